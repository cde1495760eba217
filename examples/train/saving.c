#include "saving.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is saved beside tensors; the settings come behind. */
enum { STEP, SKIPPED, SCALE, FINITE_RUNS, STATES };

static const char *const keys[STATES] = {"tessera.step", "tessera.skipped", "tessera.loss_scale",
                                         "tessera.finite_runs"};

static char *path_in(const char *folder, const char *name)
{
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static tsr_status write_bytes(const char *path, const llama_file *bytes)
{
    FILE *const file = fopen(path, "w");
    bool done = file && fwrite(bytes->data, 1, bytes->bytes, file) == bytes->bytes;
    done = done && fflush(file) == 0 && fsync(fileno(file)) == 0;
    const int error = errno;
    if (file)
        fclose(file);
    return done ? TSR_OK : tsr_status_set(TSR_ERROR_IO, "--save: %s: %s", path, strerror(error));
}

/* Writes a file that appears when it is whole. The next call writes over what a crash left. */
static tsr_status write_file(const char *path, const llama_file *bytes)
{
    char *partial;
    if (asprintf(&partial, "%s.part", path) < 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path");
    tsr_status status = write_bytes(partial, bytes);
    if (status == TSR_OK && rename(partial, path) != 0)
        status = tsr_status_set(TSR_ERROR_IO, "--save: %s: %s", path, strerror(errno));
    free(partial);
    return status;
}

/* True if the file is there, and has these bytes. */
static bool has_bytes(const char *path, const llama_file *bytes)
{
    llama_file file;
    if (access(path, R_OK) != 0 || llama_file_read_description(path, &file) != TSR_OK)
        return false;
    const bool same = file.bytes == bytes->bytes && memcmp(file.data, bytes->data, file.bytes) == 0;
    llama_file_finish(&file);
    return same;
}

/* Makes the folder, with config.json. */
static tsr_status make_folder(const char *folder, const char *config)
{
    llama_file bytes;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return tsr_status_set(TSR_ERROR_IO, "--save %s: %s", folder, strerror(errno));
    TSR_TRY(llama_file_read_description(config, &bytes));
    char *const path = path_in(folder, "config.json");
    tsr_status status = TSR_OK;
    if (!path)
        status = tsr_status_set(TSR_ERROR_MEMORY, "no memory for a path in %s", folder);
    else if (!has_bytes(path, &bytes))
        status = write_file(path, &bytes);
    free(path);
    llama_file_finish(&bytes);
    return status;
}

/* Names the numbers, and sets those of the trainer; of the loss scale its bits. */
static void set_numbers(const train_trainer *trainer, int64_t step, tsr_checkpoint_number numbers[STATES])
{
    int64_t scale;
    memcpy(&scale, &trainer->scale.scale, sizeof scale);
    const int64_t values[STATES] = {step, trainer->skipped, scale, trainer->scale.finite_runs};
    for (int i = 0; i < STATES; i++)
        numbers[i] = (tsr_checkpoint_number){keys[i], values[i]};
}

/* Saves, or starts to where `going` is not NULL. */
static tsr_status write_state(const train_saver *saver, int64_t step, tsr_checkpoint_saving **going)
{
    const train_trainer *const trainer = saver->trainer;
    const tsr_safetensors_text format = {"format", "pt"};
    tsr_checkpoint_number numbers[STATES + TRAIN_MOST_SETTINGS];
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
    set_numbers(trainer, step, numbers);
    memcpy(numbers + STATES, saver->settings->of, saver->settings->count * sizeof *numbers);
    options.metadata = &format;
    options.metadata_count = 1;
    options.numbers = numbers;
    options.number_count = STATES + saver->settings->count;
    for (size_t i = 0; i < trainer->count; i++)
        all[i] = (tsr_safetensors_tensor){train_trainer_name(trainer, i), trainer->tensors[i], TSR_DTYPE_NONE};
    const tsr_status status =
        going ? tsr_checkpoint_start(trainer->comm, saver->folder, trainer->count, all, &options, going)
              : tsr_checkpoint_save(trainer->comm, saver->folder, trainer->count, all, &options);
    free(views);
    free(all);
    return status;
}

tsr_status train_saver_save(train_saver *saver, int64_t step)
{
    tsr_comm *const comm = saver->trainer->comm;
    TSR_TRY(train_saver_finish(saver));
    if (tsr_comm_rank(comm) == 0)
        TSR_TRY(make_folder(saver->folder, saver->config)); /* where this fails, the others hear of it at the barrier */
    TSR_TRY(tsr_comm_barrier(comm));
    return write_state(saver, step, saver->in_background ? &saver->going : NULL);
}

tsr_status train_saver_poll(train_saver *saver)
{
    int written = 0;
    if (saver->going)
        TSR_TRY(tsr_checkpoint_test(saver->going, &written));
    return written ? train_saver_finish(saver) : TSR_OK;
}

tsr_status train_saver_finish(train_saver *saver)
{
    tsr_checkpoint_saving *const going = saver->going;
    saver->going = NULL;
    return going ? tsr_checkpoint_finish(going) : TSR_OK;
}

tsr_status train_saver_give_up(train_saver *saver, tsr_status status)
{
    tsr_kept_sentence cause;
    if (!saver->going)
        return status;
    tsr_status_keep(&cause);
    tsr_comm_abort(saver->trainer->comm);
    (void)train_saver_finish(saver); /* fails now, and frees */
    return tsr_status_restore(&cause, status);
}

static tsr_status read_state(const train_trainer *trainer, const char *folder, tsr_checkpoint_number numbers[STATES])
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
    options.number_count = STATES;
    for (size_t i = 0; i < trainer->count; i++)
        all[i] = (tsr_safetensors_target){train_trainer_name(trainer, i), trainer->tensors[i]};
    const tsr_status status = tsr_checkpoint_load(trainer->comm, folder, trainer->count, all, &options);
    free(views);
    free(all);
    return status;
}

/* The loss scale goes on where this run has one, too. */
static bool take_numbers(train_trainer *trainer, const tsr_checkpoint_number numbers[STATES], int64_t *step)
{
    tsr_loss_scale scale = {0, numbers[FINITE_RUNS].value};
    memcpy(&scale.scale, &numbers[SCALE].value, sizeof scale.scale);
    const int64_t skipped = numbers[SKIPPED].value, next = numbers[STEP].value;
    if (skipped < 0 || next < skipped || scale.finite_runs < 0 || !(scale.scale >= 0) || isinf(scale.scale))
        return false;
    if (trainer->scale.scale > 0 && scale.scale > 0)
        trainer->scale = scale;
    trainer->skipped = skipped;
    *step = next;
    return true;
}

tsr_status train_resume(train_trainer *trainer, const char *folder, int64_t *step)
{
    tsr_checkpoint_number numbers[STATES];
    set_numbers(trainer, 0, numbers);
    TSR_TRY(read_state(trainer, folder, numbers));
    return take_numbers(trainer, numbers, step)
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_ARGUMENT, "--resume %s: its metadata is not that of a training", folder);
}
