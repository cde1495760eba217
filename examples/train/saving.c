#include "saving.h"

#include <tessera/new_file.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STEP_KEY      "tessera.step"
#define OPTIMIZER_KEY "tessera.optimizer"

static const char *optimizer_name(const train_trainer *trainer)
{
    static const char *const names[] = {
        [TSR_SGD] = "sgd", [TSR_ADAMW] = "adamw", [TSR_LION] = "lion", [TSR_ADAFACTOR] = "adafactor", [TSR_MUON] = "muon"};
    return names[trainer->plan->optimizer.kind];
}

static tsr_status copy_file(const char *from, const char *to)
{
    llama_file file;
    tsr_new_file *new;
    TSR_TRY(llama_file_read_description(from, &file));
    tsr_status status = tsr_new_file_create(to, &new);
    if (status == TSR_OK) {
        status = tsr_new_file_write(new, file.data, file.bytes);
        if (status == TSR_OK)
            status = tsr_new_file_publish(new);
        else
            tsr_new_file_discard(new);
    }
    llama_file_finish(&file);
    return status;
}

static char *path_in(const char *folder, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

/* Makes the folder, with config.json. */
static tsr_status make_folder(const char *folder, const char *config)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return tsr_status_set(TSR_ERROR_IO, "--save %s: %s", folder, strerror(errno));
    char *const path = path_in(folder, "config.json");
    if (!path)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path in %s", folder);
    struct stat from, to;
    const bool is_same =
        stat(config, &from) == 0 && stat(path, &to) == 0 && from.st_dev == to.st_dev && from.st_ino == to.st_ino;
    const tsr_status status = is_same ? TSR_OK : copy_file(config, path);
    free(path);
    return status;
}

static tsr_status write_state(const train_trainer *trainer, const char *folder, int64_t step)
{
    char number[24];
    const tsr_safetensors_text texts[] = {{"format", "pt"}, {STEP_KEY, number}, {OPTIMIZER_KEY, optimizer_name(trainer)}};
    const tsr_safetensors_write_options options = {sizeof options, sizeof texts / sizeof *texts, texts};
    char *const path = path_in(folder, "model.safetensors");
    tsr_safetensors_tensor *const all = calloc(trainer->count, sizeof *all);
    tsr_status status = TSR_OK;
    snprintf(number, sizeof number, "%lld", (long long)step);
    for (size_t i = 0; i < trainer->count && all; i++)
        all[i] = (tsr_safetensors_tensor){train_trainer_name(trainer, i), trainer->tensors[i], TSR_DTYPE_NONE};
    if (path && all)
        status = tsr_safetensors_write(path, trainer->count, all, &options);
    else
        status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for the names of %zu tensors", trainer->count);
    free(all);
    free(path);
    return status;
}

tsr_status train_save(const train_trainer *trainer, const char *folder, const char *config, int64_t step)
{
    if (tsr_comm_rank(trainer->comm) == 0)
        TSR_TRY(make_folder(folder, config)); /* where this fails, the others hear of it at the barrier */
    TSR_TRY(tsr_comm_barrier(trainer->comm));
    return write_state(trainer, folder, step);
}

/* Reads the metadata of a state. */
static tsr_status read_metadata(const train_trainer *trainer, const char *folder, const tsr_safetensors *file,
                                int64_t *step)
{
    char *end = NULL;
    const char *const text = tsr_safetensors_metadata(file, STEP_KEY);
    const char *const optimizer = tsr_safetensors_metadata(file, OPTIMIZER_KEY);
    errno = 0;
    const long long value = text ? strtoll(text, &end, 10) : -1;
    if (!text || !optimizer || end == text || *end != '\0' || errno != 0 || value < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "--resume %s: its metadata has no step of a training; give a folder of --save, or, to "
                              "train a model's weights from step 0, the folder as MODEL_DIR",
                              folder);
    if (strcmp(optimizer, optimizer_name(trainer)) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--resume %s: it was trained with --optimizer %.16s, not %s", folder,
                              optimizer, optimizer_name(trainer));
    *step = value;
    return TSR_OK;
}

static tsr_status read_state(const train_trainer *trainer, const char *folder)
{
    tsr_safetensors_target *const all = calloc(trainer->count, sizeof *all);
    if (!all)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the names of %zu tensors", trainer->count);
    for (size_t i = 0; i < trainer->count; i++)
        all[i] = (tsr_safetensors_target){train_trainer_name(trainer, i), trainer->tensors[i]};
    const tsr_status status = tsr_safetensors_restore(folder, trainer->count, all);
    free(all);
    return status;
}

tsr_status train_resume(const train_trainer *trainer, const char *folder, int64_t *step)
{
    tsr_safetensors *file;
    TSR_TRY(tsr_safetensors_open(folder, &file));
    const tsr_status status = read_metadata(trainer, folder, file, step);
    tsr_safetensors_destroy(file);
    TSR_TRY(status);
    return read_state(trainer, folder);
}
