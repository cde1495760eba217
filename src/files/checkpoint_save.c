#include "files/checkpoint_files.h"
#include "files/checkpoint_plan.h"
#include "files/checkpoint_write.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

static void free_saving(tsr_checkpoint_saving *s)
{
    for (size_t i = 0; i < s->file_count; i++) {
        free(s->files[i].header.text);
        free(s->files[i].path);
        free(s->files[i].partial);
    }
    for (size_t i = 0; i < s->item_count; i++) {
        tsr_checkpoint_snapshot_free(&s->items[i].snapshot);
        tsr_dtensor_destroy(s->items[i].moved);
    }
    free(s->index);
    free(s->files);
    free(s->items);
    free(s->digits);
    free(s->texts);
    free(s->inside);
    free(s->folder);
    free(s);
}

/* Ends a save that did not succeed. */
static tsr_status give_up(tsr_checkpoint_saving *s, tsr_status status)
{
    tsr_checkpoint_remove_files(s);
    free_saving(s);
    return status;
}

static tsr_status share(tsr_checkpoint_saving *s, tsr_status local)
{
    return tsr_comm_share_status(s->comm, s->call, local);
}

static tsr_status make_files(tsr_checkpoint_saving *s)
{
    TSR_TRY(tsr_checkpoint_make_files(s));
    return !s->dcp && tsr_comm_rank(s->comm) == 0 ? tsr_checkpoint_make_index(s) : TSR_OK;
}

/* Collective: all that comes before the bytes. `local` is this rank's status so far. */
static tsr_status prepare(tsr_checkpoint_saving *s, size_t count, const tsr_safetensors_tensor *tensors,
                          const tsr_checkpoint_save_options *options, tsr_status local)
{
    if (local == TSR_OK)
        local = tsr_checkpoint_take(s, count, tensors, options);
    TSR_TRY(share(s, local));
    TSR_TRY(tsr_checkpoint_agree(s));
    TSR_TRY(share(s, tsr_checkpoint_plan(s)));
    TSR_TRY(share(s, tsr_comm_rank(s->comm) == 0 ? tsr_checkpoint_make_folder(s) : TSR_OK));
    TSR_TRY(tsr_comm_broadcast(s->comm, s->stamp, sizeof s->stamp, TSR_U8, 0, tsr_device_host(), NULL));
    return share(s, make_files(s));
}

static tsr_status create(const char *call, tsr_comm *comm, const char *folder, tsr_checkpoint_saving **out)
{
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: comm is NULL", call);
    tsr_checkpoint_saving *const s = calloc(1, sizeof *s);
    char *const copy = s && folder ? strdup(folder) : NULL;
    if (!s || (folder && !copy)) {
        free(s);
        return tsr_comm_share_status(comm, call,
                                     tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for the save", call));
    }
    s->call = call;
    s->comm = comm;
    s->folder = copy;
    *out = s;
    return TSR_OK;
}

/* Collective: what comes when the bytes are written, or have failed to be. */
static tsr_status complete(tsr_checkpoint_saving *s)
{
    tsr_status status = s->written;
    if (status != TSR_OK)
        tsr_status_set(status, "%s", s->sentence);
    TSR_TRY(share(s, status));
    TSR_TRY(share(s, tsr_checkpoint_complete_files(s)));
    return share(s, tsr_comm_rank(s->comm) == 0 ? tsr_checkpoint_publish(s) : TSR_OK);
}

static tsr_status finish(tsr_checkpoint_saving *s)
{
    const tsr_status status = complete(s);
    if (status != TSR_OK)
        return give_up(s, status);
    free_saving(s);
    return TSR_OK;
}

tsr_status tsr_checkpoint_save(tsr_comm *comm, const char *folder, size_t count, const tsr_safetensors_tensor *tensors,
                               const tsr_checkpoint_save_options *options)
{
    tsr_checkpoint_saving *s = NULL;
    TSR_TRY(create("tsr_checkpoint_save", comm, folder, &s));
    const tsr_status status = prepare(s, count, tensors, options, TSR_OK);
    if (status != TSR_OK)
        return give_up(s, status);
    tsr_checkpoint_write(s);
    return finish(s);
}

static void *run_thread(void *arg)
{
    tsr_checkpoint_saving *const s = arg;
    tsr_checkpoint_write(s);
    atomic_store(&s->idle, true);
    return NULL;
}

tsr_status tsr_checkpoint_start(tsr_comm *comm, const char *folder, size_t count, const tsr_safetensors_tensor *tensors,
                                const tsr_checkpoint_save_options *options, tsr_checkpoint_saving **out)
{
    tsr_checkpoint_saving *s = NULL;
    TSR_TRY(create("tsr_checkpoint_start", comm, folder, &s));
    tsr_status status = TSR_OK;
    s->apart = true;
    if (!out)
        status = tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_checkpoint_start: out is NULL");
    status = prepare(s, count, tensors, options, status);
    if (status == TSR_OK)
        status = share(s, tsr_checkpoint_copy(s));
    if (status != TSR_OK)
        return give_up(s, status);
    s->running = pthread_create(&s->thread, NULL, run_thread, s) == 0;
    if (!s->running) /* the system has no more threads: this one writes */
        tsr_checkpoint_write(s);
    s->call = "tsr_checkpoint_finish";
    *out = s;
    return TSR_OK;
}

tsr_status tsr_checkpoint_test(const tsr_checkpoint_saving *saving, int *written)
{
    static const char call[] = "tsr_checkpoint_test";
    if (!saving)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: saving is NULL", call);
    int32_t least = !saving->running || atomic_load(&saving->idle);
    if (!written)
        least = -1;
    TSR_TRY(tsr_comm_all_reduce(saving->comm, &least, &least, 1, TSR_I32, TSR_MIN, tsr_device_host(), NULL));
    if (least < 0) /* on some rank */
        return tsr_comm_share_status(
            saving->comm, call, written ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: written is NULL", call));
    *written = least;
    return TSR_OK;
}

tsr_status tsr_checkpoint_finish(tsr_checkpoint_saving *saving)
{
    if (!saving)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_checkpoint_finish: saving is NULL");
    if (saving->running)
        pthread_join(saving->thread, NULL);
    return finish(saving);
}
