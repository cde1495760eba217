#include "files/checkpoint_write.h"

#include "files/checkpoint_runs.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes that one call of the system writes. It takes Linux up to four times as long to write more
 * at once, for which it looks for large pages. */
#define PIECE_BYTES ((size_t)256 * 1024)

/* Bytes after which the disk is to begin with what was written. */
#define BEGUN_BYTES ((int64_t)8 * 1024 * 1024)

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

/* A file of which this rank writes items. */
typedef struct output {
    const char *path;
    int file;          /* -1: it is not open */
    bool box;          /* the file has this rank's shard, in its order */
    int64_t low, high; /* the bytes that the disk has not begun with lie between these */
    int64_t pending;   /* number of these bytes */
    int64_t place;     /* of the visited tensor's first byte */
    int64_t used;      /* bytes of the visited tensor so far */
} output;

static tsr_status open_output(output *to)
{
    if (to->file >= 0)
        return TSR_OK;
    to->file = open(to->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    return to->file >= 0 ? TSR_OK
                         : tsr_status_set(TSR_ERROR_IO, "%s: opening it failed: %s", to->path, strerror(errno));
}

/* Lets the disk begin with what was written, so that fsync() waits for less. What goes wrong there
 * fsync() tells. */
static void begin_bytes(output *to, int64_t at, int64_t bytes)
{
    to->low = to->pending == 0 || at < to->low ? at : to->low;
    to->high = to->pending == 0 || at + bytes > to->high ? at + bytes : to->high;
    to->pending += bytes;
    if (to->pending < BEGUN_BYTES)
        return;
    to->pending = 0;
#ifdef SYNC_FILE_RANGE_WRITE
    (void)sync_file_range(to->file, (off_t)to->low, (off_t)(to->high - to->low), SYNC_FILE_RANGE_WRITE);
#endif
}

static tsr_status write_bytes(output *to, int64_t at, const char *from, size_t bytes)
{
    TSR_TRY(open_output(to));
    while (bytes > 0) {
        const ssize_t put = pwrite(to->file, from, bytes < PIECE_BYTES ? bytes : PIECE_BYTES, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: writing %zu bytes at %lld failed: %s", to->path, bytes,
                                  (long long)at, put < 0 ? strerror(errno) : "nothing was written");
        begin_bytes(to, at, put);
        at += put;
        from += put;
        bytes -= (size_t)put;
    }
    return TSR_OK;
}

static tsr_status visit_to_file(void *arg, int64_t at, const void *bytes, size_t count)
{
    output *const to = arg;
    const int64_t position = to->box ? to->used : at;
    to->used += (int64_t)count;
    return write_bytes(to, to->place + position, bytes, count);
}

/* What a visit of a tensor's bytes goes to in memory. */
typedef struct copy {
    tsr_checkpoint_snapshot *snapshot;
    bool box; /* the file has this rank's shard, in its order */
} copy;

static tsr_status visit_to_memory(void *arg, int64_t at, const void *bytes, size_t count)
{
    const copy *const to = arg;
    tsr_checkpoint_snapshot *const snapshot = to->snapshot;
    const int64_t position = to->box ? (int64_t)snapshot->used : at;
    if (count == 0)
        return TSR_OK;
    memcpy(snapshot->data + snapshot->used, bytes, count);
    snapshot->used += count;
    return add_run(snapshot, position, count);
}

/* Copies what this rank writes of an item. */
static tsr_status take_snapshot(const tsr_checkpoint_saving *s, tsr_checkpoint_item *item)
{
    const tsr_dtensor *const x = tsr_checkpoint_source_of(item);
    copy to = {&item->snapshot, s->dcp};
    int64_t bytes;
    void *data;
    TSR_TRY(tsr_dtensor_visit_bytes(x, item->tensor.dtype, s->dcp, NULL, NULL, &bytes));
    if (bytes == 0)
        return TSR_OK;
    item->snapshot.context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(x)));
    TSR_TRY(tsr_allocate_data(item->snapshot.context, (size_t)bytes, &data));
    item->snapshot.data = data;
    return tsr_dtensor_visit_bytes(x, item->tensor.dtype, s->dcp, visit_to_memory, &to, NULL);
}

tsr_status tsr_checkpoint_copy(tsr_checkpoint_saving *s)
{
    for (size_t i = 0; i < s->item_count; i++) {
        tsr_checkpoint_item *const item = &s->items[i];
        if (item->moved && !tsr_dtensor_to_local(item->moved).device.driver)
            continue; /* it is a copy */
        TSR_TRY(take_snapshot(s, item));
        tsr_dtensor_destroy(item->moved);
        item->moved = NULL;
    }
    return TSR_OK;
}

static tsr_status write_snapshot(output *to, tsr_checkpoint_snapshot *snapshot)
{
    const char *from = snapshot->data;
    for (size_t i = 0; i < snapshot->count; i++) {
        const tsr_checkpoint_run *const run = &snapshot->runs[i];
        for (size_t j = 0; j < run->repeat; j++) {
            TSR_TRY(write_bytes(to, to->place + run->at + (int64_t)j * run->stride, from, run->bytes));
            from += run->bytes;
        }
    }
    tsr_checkpoint_snapshot_free(snapshot);
    return TSR_OK;
}

/* Writes this rank's bytes of a dtensor, whose first byte has its place at `place`. */
static tsr_status write_dtensor(output *to, const tsr_dtensor *x, tsr_dtype dtype, int64_t place)
{
    to->place = place;
    to->used = 0;
    return tsr_dtensor_visit_bytes(x, dtype, to->box, visit_to_file, to, NULL);
}

/* Collective: moves a part, or the item (NULL), to the layout in which it is written, and writes
 * it. May fail on this rank alone. */
static tsr_status write_part(output *to, const tsr_checkpoint_item *item, const tsr_dtensor *part, int64_t place)
{
    tsr_dtensor *moved;
    TSR_TRY(tsr_checkpoint_move(item, part, &moved));
    const tsr_status status = write_dtensor(to, moved, item->tensor.dtype, item->place + place);
    tsr_dtensor_destroy(moved);
    return status;
}

/* Collective: moves and writes an item part by part. `status` is this rank's so far. Before each
 * part ranks tell each other theirs, so that all stop at the same one. */
static tsr_status write_parts(const tsr_checkpoint_saving *s, output *to, const tsr_checkpoint_item *item,
                              tsr_status status)
{
    const int64_t parts = tsr_checkpoint_parts(item);
    bool goes_on = true;
    for (int64_t i = 0; i < parts && goes_on; i++) {
        tsr_dtensor *part = NULL;
        int64_t place = 0;
        if (status == TSR_OK)
            status = tsr_checkpoint_view_part(item, i, &place, &part);
        status = tsr_comm_share_status(s->comm, s->call, status);
        goes_on = status == TSR_OK;
        if (goes_on)
            status = write_part(to, item, part, place);
        tsr_dtensor_destroy(part);
    }
    return status;
}

/* Collective where the item moves, unless it is there already. */
static tsr_status write_item(tsr_checkpoint_saving *s, output *to, tsr_checkpoint_item *item, tsr_status status)
{
    if (item->moves && !item->moved && !s->apart)
        return write_parts(s, to, item, status);
    TSR_TRY(status);
    if (item->snapshot.data) {
        to->place = item->place;
        return write_snapshot(to, &item->snapshot);
    }
    /* A copy of nothing is neither a snapshot nor moved. */
    if (s->apart && !item->moved)
        return TSR_OK;
    return write_dtensor(to, tsr_checkpoint_source_of(item), item->tensor.dtype, item->place);
}

/* Writes the items of a file that have bytes on this rank. `status` is this rank's so far; after a
 * failure ranks still meet where items move. */
static tsr_status write_file(tsr_checkpoint_saving *s, const tsr_checkpoint_file *file, tsr_status status)
{
    output to = {.path = file->partial, .file = -1, .box = s->dcp};
    for (size_t i = file->first; i < file->first + file->count; i++)
        status = write_item(s, &to, &s->items[i], status);
    if (to.file < 0)
        return status;
    if (status == TSR_OK && fsync(to.file) != 0)
        status = tsr_status_set(TSR_ERROR_IO, "%s: bringing it to the disk failed: %s", file->partial, strerror(errno));
    if (close(to.file) != 0 && status == TSR_OK)
        status = tsr_status_set(TSR_ERROR_IO, "%s: closing it failed: %s", file->partial, strerror(errno));
    return status;
}

void tsr_checkpoint_write(tsr_checkpoint_saving *s)
{
    s->written = TSR_OK;
    for (size_t i = 0; i < s->file_count; i++)
        s->written = write_file(s, &s->files[i], s->written);
    if (s->written != TSR_OK)
        snprintf(s->sentence, sizeof s->sentence, "%s", tsr_status_message());
}

void tsr_checkpoint_snapshot_free(tsr_checkpoint_snapshot *snapshot)
{
    if (snapshot->data)
        tsr_release(snapshot->context, snapshot->data);
    free(snapshot->runs);
    *snapshot = (tsr_checkpoint_snapshot){.data = NULL};
}
