#include "saving.h"

#include <tessera/checkpoint.h>
#include <tessera/new_file.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* What is saved beside tensors. */
enum { STEP, OPTIMIZER, NUMBERS };

static const char *const keys[NUMBERS] = {"tessera.step", "tessera.optimizer"};
static const char *const optimizer_names[] = {
    [TSR_SGD] = "sgd", [TSR_ADAMW] = "adamw", [TSR_LION] = "lion", [TSR_ADAFACTOR] = "adafactor", [TSR_MUON] = "muon"};

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
    const tsr_safetensors_text format = {"format", "pt"};
    const tsr_checkpoint_number numbers[] = {{keys[STEP], step}, {keys[OPTIMIZER], trainer->plan->optimizer.kind}};
    tsr_checkpoint_save_options options = TSR_CHECKPOINT_SAVE_OPTIONS_INIT;
    tsr_safetensors_tensor *const all = calloc(trainer->count, sizeof *all);
    tsr_checkpoint_view *const views = calloc(trainer->count, sizeof *views);
    if (!all || !views) {
        free(views);
        free(all);
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the names of %zu tensors", trainer->count);
    }
    options.view_count = train_trainer_views(trainer, views);
    options.views = views;
    options.metadata = &format;
    options.metadata_count = 1;
    options.numbers = numbers;
    options.number_count = NUMBERS;
    for (size_t i = 0; i < trainer->count; i++)
        all[i] = (tsr_safetensors_tensor){train_trainer_name(trainer, i), trainer->tensors[i], TSR_DTYPE_NONE};
    const tsr_status status = tsr_checkpoint_save(trainer->comm, folder, trainer->count, all, &options);
    free(views);
    free(all);
    return status;
}

tsr_status train_save(const train_trainer *trainer, const char *folder, const char *config, int64_t step)
{
    if (tsr_comm_rank(trainer->comm) == 0)
        TSR_TRY(make_folder(folder, config)); /* where this fails, the others hear of it at the barrier */
    TSR_TRY(tsr_comm_barrier(trainer->comm));
    return write_state(trainer, folder, step);
}

static tsr_status read_state(const train_trainer *trainer, const char *folder, tsr_checkpoint_number numbers[NUMBERS])
{
    tsr_checkpoint_load_options options = TSR_CHECKPOINT_LOAD_OPTIONS_INIT;
    tsr_safetensors_target *const all = calloc(trainer->count, sizeof *all);
    tsr_checkpoint_view *const views = calloc(trainer->count, sizeof *views);
    if (!all || !views) {
        free(views);
        free(all);
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the names of %zu tensors", trainer->count);
    }
    options.view_count = train_trainer_views(trainer, views);
    options.views = views;
    options.numbers = numbers;
    options.number_count = NUMBERS;
    for (size_t i = 0; i < trainer->count; i++)
        all[i] = (tsr_safetensors_target){train_trainer_name(trainer, i), trainer->tensors[i]};
    const tsr_status status = tsr_checkpoint_load(trainer->comm, folder, trainer->count, all, &options);
    free(views);
    free(all);
    return status;
}

tsr_status train_resume(const train_trainer *trainer, const char *folder, int64_t *step)
{
    tsr_checkpoint_number numbers[NUMBERS] = {{keys[STEP], 0}, {keys[OPTIMIZER], 0}};
    const tsr_optimizer_kind own = trainer->plan->optimizer.kind;
    TSR_TRY(read_state(trainer, folder, numbers));
    const int64_t kind = numbers[OPTIMIZER].value;
    if (kind < 0 || kind > TSR_MUON || numbers[STEP].value < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--resume %s: its metadata is not that of a training", folder);
    if (kind != (int64_t)own)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "--resume %s: it was trained with --optimizer %s, not %s", folder,
                              optimizer_names[kind], optimizer_names[own]);
    *step = numbers[STEP].value;
    return TSR_OK;
}
