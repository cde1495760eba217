#include "files/checkpoint_write.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Adds a run to a snapshot, to the run before it where the two are one. */
static tsr_status add_run(tsr_checkpoint_snapshot *snapshot, int64_t at, size_t bytes)
{
    tsr_checkpoint_run *const last = snapshot->count > 0 ? &snapshot->runs[snapshot->count - 1] : NULL;
    if (last && last->repeat == 1 && at == last->at + (int64_t)last->bytes) {
        last->bytes += bytes;
        return TSR_OK;
    }
    if (last && last->bytes == bytes &&
        (last->repeat == 1 ? at > last->at : at == last->at + (int64_t)last->repeat * last->stride)) {
        last->stride = last->repeat == 1 ? at - last->at : last->stride;
        last->repeat++;
        return TSR_OK;
    }
    if (snapshot->count == snapshot->capacity) {
        const size_t capacity = 2 * snapshot->capacity + 8;
        tsr_checkpoint_run *const grown = realloc(snapshot->runs, capacity * sizeof *grown);
        if (!grown)
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the places of a checkpoint's bytes");
        snapshot->runs = grown;
        snapshot->capacity = capacity;
    }
    snapshot->runs[snapshot->count++] = (tsr_checkpoint_run){at, bytes, 0, 1};
    return TSR_OK;
}

/* What a visit of a tensor's bytes goes to: a snapshot, or a file. */
typedef struct sink {
    tsr_checkpoint_snapshot *snapshot; /* NULL: the file */
    const char *path;
    int file;
    int64_t place; /* of the tensor's first byte in the file */
    bool box;      /* the file has this rank's shard, in its order */
    int64_t used;  /* bytes so far */
} sink;

static tsr_status write_bytes(const char *path, int file, int64_t at, const char *from, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t put = pwrite(file, from, bytes < INT_MAX ? bytes : INT_MAX, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: writing %zu bytes at %lld failed: %s", path, bytes, (long long)at,
                                  put < 0 ? strerror(errno) : "nothing was written");
        at += put;
        from += put;
        bytes -= (size_t)put;
    }
    return TSR_OK;
}

static tsr_status take_bytes(void *arg, int64_t at, const void *bytes, size_t count)
{
    sink *const to = arg;
    const int64_t position = to->box ? to->used : at;
    to->used += (int64_t)count;
    if (!to->snapshot)
        return write_bytes(to->path, to->file, to->place + position, bytes, count);
    if (count > 0)
        memcpy(to->snapshot->data + to->snapshot->used, bytes, count);
    to->snapshot->used += count;
    return count > 0 ? add_run(to->snapshot, position, count) : TSR_OK;
}

tsr_status tsr_checkpoint_copy(tsr_checkpoint_saving *s)
{
    for (size_t i = 0; i < s->item_count; i++) {
        tsr_checkpoint_item *const item = &s->items[i];
        if (item->bytes == 0)
            continue;
        item->snapshot.data = malloc((size_t)item->bytes);
        if (!item->snapshot.data)
            return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for a copy of %lld bytes of tensor %.200s",
                                  s->call, (long long)item->bytes, item->tensor.name);
        sink to = {.snapshot = &item->snapshot, .box = s->dcp};
        TSR_TRY(
            tsr_dtensor_visit_bytes(tsr_checkpoint_source_of(item), item->tensor.dtype, s->dcp, take_bytes, &to, NULL));
        tsr_dtensor_destroy(item->reduced);
        item->reduced = NULL;
    }
    return TSR_OK;
}

static tsr_status write_snapshot(const sink *to, const tsr_checkpoint_snapshot *snapshot)
{
    const char *from = snapshot->data;
    for (size_t i = 0; i < snapshot->count; i++) {
        const tsr_checkpoint_run *const run = &snapshot->runs[i];
        for (size_t j = 0; j < run->repeat; j++) {
            TSR_TRY(write_bytes(to->path, to->file, to->place + run->at + (int64_t)j * run->stride, from, run->bytes));
            from += run->bytes;
        }
    }
    return TSR_OK;
}

/* Writes the items that have bytes on this rank. */
static tsr_status write_items(tsr_checkpoint_saving *s, const tsr_checkpoint_file *file, int fd)
{
    for (size_t i = file->first; i < file->first + file->count; i++) {
        tsr_checkpoint_item *const item = &s->items[i];
        sink to = {NULL, file->partial, fd, item->place, s->dcp, 0};
        if (item->bytes == 0)
            continue;
        if (!item->snapshot.data) {
            TSR_TRY(tsr_dtensor_visit_bytes(tsr_checkpoint_source_of(item), item->tensor.dtype, s->dcp, take_bytes, &to,
                                            NULL));
            continue;
        }
        TSR_TRY(write_snapshot(&to, &item->snapshot));
        tsr_checkpoint_snapshot_free(&item->snapshot);
    }
    return fsync(fd) == 0
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_IO, "%s: bringing it to the disk failed: %s", file->partial, strerror(errno));
}

static tsr_status write_file(tsr_checkpoint_saving *s, const tsr_checkpoint_file *file)
{
    bool some = false;
    for (size_t i = file->first; i < file->first + file->count; i++)
        some = some || s->items[i].bytes > 0;
    if (!some)
        return TSR_OK;
    const int fd = open(file->partial, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: opening it failed: %s", file->partial, strerror(errno));
    tsr_status status = write_items(s, file, fd);
    if (close(fd) != 0 && status == TSR_OK)
        status = tsr_status_set(TSR_ERROR_IO, "%s: closing it failed: %s", file->partial, strerror(errno));
    return status;
}

void tsr_checkpoint_write(tsr_checkpoint_saving *s)
{
    s->written = TSR_OK;
    for (size_t i = 0; i < s->file_count && s->written == TSR_OK; i++)
        s->written = write_file(s, &s->files[i]);
    if (s->written != TSR_OK)
        snprintf(s->sentence, sizeof s->sentence, "%s", tsr_status_message());
}

void tsr_checkpoint_snapshot_free(tsr_checkpoint_snapshot *snapshot)
{
    free(snapshot->data);
    free(snapshot->runs);
    *snapshot = (tsr_checkpoint_snapshot){NULL, 0, NULL, 0, 0};
}
