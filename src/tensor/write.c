#include "base/hash.h"
#include "base/memory/memory.h"
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "device/allocation.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/dtensor.h"
#include "tensor/replicas.h"
#include "tensor/runs.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Bytes of elements that are brought to the host, or converted, at a time. */
#define STAGE_BYTES ((size_t)256 * 1024)

/* Bytes that one call of the system writes. It takes Linux up to four times as long to write more
 * at once, for which it looks for large pages. */
#define PIECE_BYTES ((size_t)256 * 1024)

/* Replicas share the work of a shard of at least so many bytes; of a smaller one, the first writes
 * all. */
#define SHARED_BYTES ((int64_t)64 * 1024)

/* What ranks write, and where. All ranks have the same. */
typedef struct target {
    const char *call; /* the user's, for sentences */
    const char *path;
    int64_t offset; /* bytes in the file before the tensor */
    tsr_dtype dtype;
    const tsr_layout *layout; /* without Partial, once the terms are reduced */
    uint64_t hash;            /* of what the caller gave */
} target;

/* Visits one rank's part of the tensor. Its local tensor is contiguous. Elements are counted in the
 * order of the shard. */
typedef struct writer {
    const tsr_layout *layout;
    tsr_dtype dtype; /* of the file's elements */
    bool whole;      /* the first replica has all of the shard */
    tsr_visit_bytes *visit;
    void *arg;
    size_t file_bytes, local_bytes; /* bytes of one element in the file, and of the local tensor */
    tsr_tensor local;
    int64_t first, end;  /* the elements that this replica writes */
    int64_t at;          /* the first element of the next run */
    tsr_device_ops ops;  /* of the local tensor's device */
    tsr_device_ops host; /* converts */
    char *fetched;       /* host memory for elements of a device; NULL on the host */
    char *converted;     /* elements as the file has them; NULL if none is converted */
    const char *ready;   /* elements [ready_from, ready_to), as the file has them */
    int64_t ready_from, ready_to;
} writer;

/* The file that this rank has open. */
typedef struct output {
    const target *to;
    int file;
    int64_t bytes_written;
} output;

static tsr_status write_bytes(void *arg, int64_t at, const void *data, size_t bytes)
{
    output *const w = arg;
    const char *from = data;
    at += w->to->offset;
    while (bytes > 0) {
        const ssize_t put = pwrite(w->file, from, bytes < PIECE_BYTES ? bytes : PIECE_BYTES, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: writing %zu bytes at %lld failed: %s", w->to->path, bytes,
                                  (long long)at, put < 0 ? strerror(errno) : "nothing was written");
        at += put;
        from += put;
        bytes -= (size_t)put;
        w->bytes_written += put;
    }
    return TSR_OK;
}

/* Makes elements from `from` on ready: as many as the stages hold, or all if there is no stage. */
static tsr_status make_ready(writer *w, int64_t from)
{
    const size_t wider = w->file_bytes > w->local_bytes ? w->file_bytes : w->local_bytes;
    const int64_t room = (int64_t)(STAGE_BYTES / wider), rest = w->end - from;
    const bool staged = w->fetched || w->converted;
    const int64_t count = staged && room < rest ? room : rest;
    const char *elements = (const char *)w->local.data + (size_t)from * w->local_bytes;
    if (w->fetched) {
        TSR_TRY(w->ops.table->copy(w->ops.self, w->ops.index, w->fetched, elements, (size_t)count * w->local_bytes,
                                   TSR_COPY_TO_HOST, NULL));
        TSR_TRY(tsr_device_settle(&w->ops, NULL, TSR_OK));
        elements = w->fetched;
    }
    if (w->converted) {
        TSR_TRY(w->host.table->convert(w->host.self, w->host.index, w->converted, w->dtype, elements, w->layout->dtype,
                                       count, NULL));
        elements = w->converted;
    }
    w->ready = elements;
    w->ready_from = from;
    w->ready_to = from + count;
    return TSR_OK;
}

/* Visits those of the run's elements that are this replica's. */
static tsr_status visit_run(void *arg, int64_t first, int64_t count)
{
    writer *const w = arg;
    const int64_t run = w->at;
    int64_t from = run > w->first ? run : w->first;
    const int64_t end = run + count < w->end ? run + count : w->end;
    w->at += count;
    while (from < end) {
        if (from >= w->ready_to)
            TSR_TRY(make_ready(w, from));
        const int64_t stop = end < w->ready_to ? end : w->ready_to;
        TSR_TRY(w->visit(w->arg, (first + from - run) * (int64_t)w->file_bytes,
                         w->ready + (size_t)(from - w->ready_from) * w->file_bytes,
                         (size_t)(stop - from) * w->file_bytes));
        from = stop;
    }
    return TSR_OK;
}

static tsr_status visit_staged(writer *w, const int64_t *coordinate)
{
    tsr_context *const context = w->layout->context;
    void *fetched = NULL, *converted = NULL;
    tsr_status status = TSR_OK;
    if (w->local.device.driver)
        status = tsr_allocate(context, STAGE_BYTES, &fetched);
    if (status == TSR_OK && w->dtype != w->layout->dtype)
        status = tsr_allocate(context, STAGE_BYTES, &converted);
    w->fetched = fetched;
    w->converted = converted;
    if (status == TSR_OK)
        status = tsr_visit_runs(w->layout, coordinate, visit_run, w);
    tsr_release(context, converted);
    tsr_release(context, fetched);
    return status;
}

/* Copies a strided local tensor to contiguous memory of its device, which the caller releases. */
static tsr_status pack(const writer *w, size_t bytes, tsr_tensor *out)
{
    tsr_tensor packed = tsr_tensor_contiguous(NULL, w->local.dtype, w->local.ndim, w->local.shape);
    packed.device = w->local.device;
    TSR_TRY(tsr_device_allocate(w->layout->context, packed.device, bytes, &packed.data));
    const tsr_status status =
        tsr_device_settle(&w->ops, NULL, tsr_device_copy_tensor(&w->ops, &w->local, &packed, NULL));
    if (status == TSR_OK)
        *out = packed;
    else
        tsr_device_release(w->layout->context, packed.device, packed.data, bytes);
    return status;
}

static tsr_status visit_local(writer *w, const int64_t *coordinate, int64_t count)
{
    const size_t bytes = (size_t)count * w->local_bytes;
    if (tsr_tensor_is_contiguous(&w->local))
        return visit_staged(w, coordinate);
    TSR_TRY(pack(w, bytes, &w->local));
    const tsr_status status = visit_staged(w, coordinate);
    tsr_device_release(w->layout->context, w->local.device, w->local.data, bytes);
    return status;
}

/* Sets the elements, of `count`, that this rank has of a shard that its replicas have too. */
static void divide_among_replicas(writer *w, const int64_t *coordinate, int64_t count)
{
    const tsr_replica replica = tsr_replica_at(w->layout, coordinate);
    if (w->whole || count * (int64_t)w->file_bytes < SHARED_BYTES)
        w->end = replica.number == 0 ? count : 0;
    else
        tsr_replica_share(replica, count, &w->first, &w->end);
}

static tsr_status open_file(const char *path, int flags, int *out)
{
    /* O_NONBLOCK, because opening a pipe must not wait for its reader; pwrite() then refuses the
     * pipe. */
    *out = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags, 0666);
    return *out >= 0 ? TSR_OK : tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
}

/* Some file systems tell of a full disk only here. */
static tsr_status close_file(const char *path, int file, tsr_status status)
{
    if (close(file) == 0 || status != TSR_OK)
        return status;
    return tsr_status_set(TSR_ERROR_IO, "%s: closing it failed: %s", path, strerror(errno));
}

/* Finds this rank's part of `x`; none: `w->first` is `w->end`. `*count`: elements of its shard. */
static tsr_status find_part(writer *w, const tsr_dtensor *x, int64_t *coordinate, int64_t *count)
{
    if (!tsr_mesh_locate(w->layout->mesh, tsr_comm_rank(x->comm), coordinate))
        return TSR_OK;
    TSR_TRY(tsr_tensor_count(&x->local, count));
    w->local = x->local;
    w->file_bytes = tsr_dtype_bytes(w->dtype);
    w->local_bytes = w->layout->element_bytes;
    w->ops = tsr_device_resolve(w->layout->context, x->local.device);
    w->host = tsr_device_resolve(w->layout->context, tsr_device_host());
    divide_among_replicas(w, coordinate, *count);
    return TSR_OK;
}

static tsr_status check_visit(const tsr_dtensor *x, tsr_dtype dtype)
{
    static const char call[] = "tsr_dtensor_visit_bytes";
    int64_t end;
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: x is NULL", call);
    if (!tsr_dtype_get(dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %d, which is not a dtype", call, (int)dtype);
    if (!tsr_file_converts(x->layout->dtype, dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: from %s to %s: only floating types are converted", call,
                              tsr_dtype_name(x->layout->dtype), tsr_dtype_name(dtype));
    if (!tsr_file_end(x->layout, tsr_dtype_bytes(dtype), 0, &end))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 bytes", call);
    for (int i = 0; i < x->layout->mesh_ndim; i++)
        if (tsr_layout_kind(x->layout, i) == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: x is Partial on mesh dim %d: redistribute it first", call,
                                  i);
    return TSR_OK;
}

tsr_status tsr_dtensor_visit_bytes(const tsr_dtensor *x, tsr_dtype dtype, int whole, tsr_visit_bytes *visit, void *arg,
                                   int64_t *bytes)
{
    int64_t coordinate[TSR_MAX_DIMS], count = 0;
    TSR_TRY(check_visit(x, dtype));
    writer w = {.layout = x->layout, .dtype = dtype, .whole = whole != 0, .visit = visit, .arg = arg};
    TSR_TRY(find_part(&w, x, coordinate, &count));
    if (visit && w.first < w.end)
        TSR_TRY(visit_local(&w, coordinate, count));
    if (bytes)
        *bytes = (w.end - w.first) * (int64_t)w.file_bytes;
    return TSR_OK;
}

static tsr_status write_part(const target *to, const tsr_dtensor *x, int64_t *bytes_written)
{
    output out = {.to = to};
    int64_t bytes;
    TSR_TRY(tsr_dtensor_visit_bytes(x, to->dtype, 0, NULL, NULL, &bytes));
    if (bytes == 0)
        return TSR_OK;
    TSR_TRY(open_file(to->path, 0, &out.file));
    const tsr_status status = tsr_dtensor_visit_bytes(x, to->dtype, 0, write_bytes, &out, NULL);
    *bytes_written = out.bytes_written;
    return close_file(to->path, out.file, status);
}

/* Rank 0 makes the file if there is none, so that peers need not race for it. */
static tsr_status create_file(const target *to, const tsr_comm *comm)
{
    int file;
    if (tsr_comm_rank(comm) != 0)
        return TSR_OK;
    TSR_TRY(open_file(to->path, O_CREAT, &file));
    return close_file(to->path, file, TSR_OK);
}

static void describe_target(const void *arg, char *text, size_t capacity)
{
    const target *const to = arg;
    char layout[512];
    snprintf(text, capacity, "a write of %s as %s at byte %lld of %.100s",
             tsr_layout_describe(to->layout, layout, sizeof layout), tsr_dtype_name(to->dtype), (long long)to->offset,
             to->path ? to->path : "NULL");
}

/* Collective: checks that ranks write the same tensor to the same place, and that none has
 * failed. */
static tsr_status agree(tsr_comm *comm, const target *to, tsr_status local)
{
    TSR_TRY(tsr_comm_enter(comm, to->call));
    return tsr_comm_leave(comm, tsr_comm_agree(comm, to->hash, local, describe_target, to));
}

/* The placements of the layout with Replicate in place of each Partial; false if there is none. */
static bool without_partial(const tsr_layout *layout, tsr_placement *placements)
{
    bool some = false;
    for (int i = 0; i < layout->mesh_ndim; i++) {
        const bool partial = tsr_layout_kind(layout, i) == TSR_PARTIAL;
        placements[i] = partial ? tsr_replicate() : layout->placements[i];
        some = some || partial;
    }
    return some;
}

static tsr_status write_together(target *to, const tsr_dtensor *x, int64_t *bytes_written)
{
    tsr_comm *const comm = x->comm;
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_dtensor *reduced = NULL;
    tsr_status status = TSR_OK;
    if (without_partial(x->layout, placements))
        status = tsr_redistribute(x, placements, &reduced);
    const tsr_dtensor *const whole = reduced ? reduced : x;
    to->layout = whole->layout;
    if (status == TSR_OK)
        status = create_file(to, comm);
    status = agree(comm, to, status);
    if (status == TSR_OK)
        status = agree(comm, to, write_part(to, whole, bytes_written));
    tsr_dtensor_destroy(reduced);
    return status;
}

static uint64_t hash_call(const target *to)
{
    uint64_t hash = tsr_hash_text(to->layout->hash, to->path ? to->path : "");
    hash = tsr_hash_text(hash, "write");
    return tsr_hash_word(tsr_hash_word(hash, (uint64_t)to->offset), (uint64_t)to->dtype);
}

static tsr_status check_call(const target *to)
{
    int64_t end;
    if (!to->path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: path is NULL", to->call);
    if (to->offset < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: offset %lld is negative", to->call, (long long)to->offset);
    if (!tsr_dtype_get(to->dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %d, which is not a dtype", to->call, (int)to->dtype);
    if (!tsr_file_converts(to->layout->dtype, to->dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: from %s to %s: only floating types are converted", to->call,
                              tsr_dtype_name(to->layout->dtype), tsr_dtype_name(to->dtype));
    if (!tsr_file_end(to->layout, tsr_dtype_bytes(to->dtype), to->offset, &end))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: at byte %lld the tensor would end beyond byte 2^63 - 1",
                              to->call, to->path, (long long)to->offset);
    return TSR_OK;
}

static tsr_status write_dtensor(const char *call, const tsr_dtensor *x, const char *path, int64_t offset,
                                tsr_dtype dtype, int64_t *bytes_written)
{
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: x is NULL", call);
    TSR_TRY(tsr_comm_check_open(x->comm, call));
    target to = {call, path, offset, dtype, x->layout, 0};
    to.hash = hash_call(&to);
    int64_t written = 0;
    TSR_TRY(agree(x->comm, &to, check_call(&to)));
    TSR_TRY(write_together(&to, x, &written));
    if (bytes_written)
        *bytes_written = written;
    return TSR_OK;
}

tsr_status tsr_dtensor_write_as(const tsr_dtensor *x, const char *path, int64_t offset, tsr_dtype dtype,
                                int64_t *bytes_written)
{
    return write_dtensor("tsr_dtensor_write_as", x, path, offset, dtype, bytes_written);
}

tsr_status tsr_dtensor_write(const tsr_dtensor *x, const char *path, int64_t offset)
{
    return write_dtensor("tsr_dtensor_write", x, path, offset, x ? x->layout->dtype : TSR_DTYPE_NONE, NULL);
}
