#include "base/checked.h"
#include "base/memory/memory.h"
#include "device/device.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "tensor/dtensor.h"
#include "tensor/runs.h"

#include <tessera/sys/status.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the file's elements that are converted at a time. */
#define STAGE_BYTES ((size_t)256 * 1024)

/* Reads one rank's shard from files into memory, in the order of the shard's elements. */
typedef struct reader {
    const char *call; /* the public function, for error sentences */
    const tsr_file_part *parts;
    size_t count;
    const tsr_layout *layout;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_device_ops ops;
    const char *path; /* of the file that is open; NULL: none is */
    int file;
    size_t part;        /* that was read last */
    int64_t part_first; /* the tensor's element with which it begins */
    char *data;         /* where the next elements go */
    char *stage;        /* elements that wait for conversion; NULL if no part wants any */
    tsr_dtype dtype;    /* of the elements in `stage` */
    size_t staged;      /* bytes in `stage` */
    int64_t bytes_read;
} reader;

static void close_file(reader *r)
{
    if (r->path)
        close(r->file);
    r->path = NULL;
}

/* Opens the file at `path`, unless it is the one that is open. */
static tsr_status open_file(reader *r, const char *path)
{
    if (r->path && strcmp(r->path, path) == 0)
        return TSR_OK;
    close_file(r);
    /* O_NONBLOCK, because opening a pipe must not wait for its writer; pread() then refuses the
     * pipe. */
    r->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->file < 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", path, strerror(errno));
    r->path = path;
    return TSR_OK;
}

static tsr_status read_bytes(reader *r, int64_t at, char *to, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t got = pread(r->file, to, bytes < INT_MAX ? bytes : INT_MAX, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tsr_status_set(TSR_ERROR_IO, "%s: reading %zu bytes at %lld failed: %s", r->path, bytes,
                                  (long long)at, strerror(errno));
        if (got == 0)
            return tsr_status_set(TSR_ERROR_IO, "%s ends at byte %lld, within the tensor", r->path, (long long)at);
        at += got;
        to += got;
        bytes -= (size_t)got;
        r->bytes_read += got;
    }
    return TSR_OK;
}

static tsr_status flush_stage(reader *r)
{
    if (r->staged == 0)
        return TSR_OK;
    const int64_t count = (int64_t)(r->staged / tsr_dtype_bytes(r->dtype));
    TSR_TRY(
        r->ops.table->convert(r->ops.self, r->ops.index, r->data, r->layout->dtype, r->stage, r->dtype, count, NULL));
    r->data += (size_t)count * r->layout->element_bytes;
    r->staged = 0;
    return TSR_OK;
}

/* Reads bytes of elements that are converted. */
static tsr_status read_staged(reader *r, int64_t at, size_t bytes)
{
    while (bytes > 0) {
        if (r->staged == STAGE_BYTES)
            TSR_TRY(flush_stage(r));
        const size_t some = bytes < STAGE_BYTES - r->staged ? bytes : STAGE_BYTES - r->staged;
        TSR_TRY(read_bytes(r, at, r->stage + r->staged, some));
        r->staged += some;
        at += (int64_t)some;
        bytes -= some;
    }
    return TSR_OK;
}

/* Reads `count` elements of the part at hand, from its element `first` on. */
static tsr_status read_part(reader *r, int64_t first, int64_t count)
{
    const tsr_file_part *const part = &r->parts[r->part];
    const int64_t element_bytes = (int64_t)tsr_dtype_bytes(part->dtype), at = part->offset + first * element_bytes;
    const size_t bytes = (size_t)(count * element_bytes);
    if (part->dtype != r->dtype)
        TSR_TRY(flush_stage(r));
    r->dtype = part->dtype;
    TSR_TRY(open_file(r, part->path));
    if (part->dtype != r->layout->dtype)
        return read_staged(r, at, bytes);
    TSR_TRY(read_bytes(r, at, r->data, bytes));
    r->data += bytes;
    return TSR_OK;
}

/* Reads `count` elements that follow each other in the tensor, from its element `first` on. */
static tsr_status read_run(void *arg, int64_t first, int64_t count)
{
    reader *const r = arg;
    while (count > 0) {
        for (; first < r->part_first; r->part--)
            r->part_first -= r->parts[r->part - 1].count;
        for (; first - r->part_first >= r->parts[r->part].count; r->part++)
            r->part_first += r->parts[r->part].count;
        const int64_t within = first - r->part_first, left = r->parts[r->part].count - within;
        const int64_t some = count < left ? count : left;
        TSR_TRY(read_part(r, within, some));
        first += some;
        count -= some;
    }
    return TSR_OK;
}

static tsr_status read_shard(reader *r)
{
    TSR_TRY(tsr_visit_runs(r->layout, r->coordinate, read_run, r));
    return flush_stage(r);
}

/* False if this rank is to hold the identity of `*op` and reads nothing: on a Partial(sum) or
 * Partial(prod) mesh dim, only coordinate 0 holds the value. */
static bool holds_value(const tsr_layout *layout, const int64_t *coordinate, tsr_reduce_op *op)
{
    for (int i = 0; i < layout->mesh_ndim; i++) {
        *op = layout->placements[i].op;
        if (tsr_layout_kind(layout, i) == TSR_PARTIAL && (*op == TSR_SUM || *op == TSR_PROD) && coordinate[i] != 0)
            return false;
    }
    return true;
}

/* Checks that the part's file has all of it. */
static tsr_status check_size(reader *r, const tsr_file_part *part)
{
    struct stat info;
    int64_t end;
    TSR_TRY(open_file(r, part->path));
    if (fstat(r->file, &info) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", part->path, strerror(errno));
    if (!tsr_multiply((int64_t)tsr_dtype_bytes(part->dtype), part->count, &end))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 bytes", part->path);
    if (!tsr_add_sizes(end, part->offset, &end) || (S_ISREG(info.st_mode) && end > info.st_size))
        return tsr_status_set(TSR_ERROR_IO, "%s has %lld bytes, but the tensor at byte %lld would end beyond",
                              part->path, (long long)info.st_size, (long long)part->offset);
    return TSR_OK;
}

/* Makes room for the elements that are converted, if any are. */
static tsr_status make_stage(reader *r)
{
    void *stage = NULL;
    for (size_t i = 0; i < r->count && !stage; i++)
        if (r->parts[i].dtype != r->layout->dtype)
            TSR_TRY(tsr_allocate(r->layout->context, STAGE_BYTES, &stage));
    r->stage = stage;
    return TSR_OK;
}

/* Checks first that the files have the whole tensor, even if this rank reads little of it, so that
 * every rank comes to the same result. */
static tsr_status read_into(reader *r, const tsr_tensor *local)
{
    for (size_t i = 0; i < r->count; i++)
        TSR_TRY(check_size(r, &r->parts[i]));
    tsr_reduce_op op;
    if (!holds_value(r->layout, r->coordinate, &op))
        return tsr_device_fill_identity(&r->ops, local, op, NULL);
    r->data = local->data;
    TSR_TRY(make_stage(r));
    const tsr_status status = read_shard(r);
    tsr_release(r->layout->context, r->stage);
    return status;
}

static tsr_status check_part(const reader *r, const tsr_file_part *part)
{
    if (!part->path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: path is NULL", r->call);
    if (part->offset < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: offset %lld is negative", r->call, (long long)part->offset);
    if (part->count < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a part of %lld elements", r->call, (long long)part->count);
    if (!tsr_dtype_get(part->dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %d, which is not a dtype", r->call, (int)part->dtype);
    if (!tsr_file_converts(part->dtype, r->layout->dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: from %s to %s: only floating types are converted", r->call,
                              tsr_dtype_name(part->dtype), tsr_dtype_name(r->layout->dtype));
    return TSR_OK;
}

/* Checks that the parts make up the tensor. */
static tsr_status check_parts(const reader *r)
{
    int64_t wanted, count = 0;
    TSR_TRY(tsr_check_communicates(r->layout->mesh, r->call));
    for (size_t i = 0; i < r->count; i++) {
        TSR_TRY(check_part(r, &r->parts[i]));
        if (!tsr_add_sizes(count, r->parts[i].count, &count))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: parts of more than 2^63 - 1 elements", r->call);
    }
    if (!tsr_file_end(r->layout, 1, 0, &wanted))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 elements", r->call);
    if (count != wanted)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the parts have %lld elements, but the layout has %lld", r->call,
                              (long long)count, (long long)wanted);
    return TSR_OK;
}

static tsr_status distribute(reader *r, int64_t *bytes_read, tsr_dtensor **out)
{
    tsr_dtensor *y;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_dtensor_create(r->layout, tsr_device_host(), &y));
    r->ops = tsr_device_resolve(r->layout->context, y->local.device);
    if (tsr_mesh_locate(r->layout->mesh, tsr_comm_rank(tsr_mesh_comm(r->layout->mesh)), r->coordinate))
        status = read_into(r, &y->local);
    close_file(r);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(y);
        return status;
    }
    if (bytes_read)
        *bytes_read = r->bytes_read;
    *out = y;
    return TSR_OK;
}

tsr_status tsr_distribute_file_parts(size_t count, const tsr_file_part *parts, const tsr_layout *layout,
                                     int64_t *bytes_read, tsr_dtensor **out)
{
    if ((!parts && count > 0) || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_distribute_file_parts: %s is NULL",
                              !layout ? "layout"
                              : !out  ? "out"
                                      : "parts");
    reader r = {.call = "tsr_distribute_file_parts", .parts = parts, .count = count, .layout = layout};
    TSR_TRY(check_parts(&r));
    return distribute(&r, bytes_read, out);
}

tsr_status tsr_distribute_file(const char *path, int64_t offset, tsr_dtype dtype, const tsr_layout *layout,
                               int64_t *bytes_read, tsr_dtensor **out)
{
    if (!path || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_distribute_file: %s is NULL",
                              !path     ? "path"
                              : !layout ? "layout"
                                        : "out");
    tsr_file_part part = {path, offset, dtype, 0};
    reader r = {.call = "tsr_distribute_file", .parts = &part, .count = 1, .layout = layout};
    if (!tsr_file_end(layout, 1, 0, &part.count))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 bytes", path);
    TSR_TRY(check_parts(&r));
    return distribute(&r, bytes_read, out);
}
