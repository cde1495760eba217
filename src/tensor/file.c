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

/* Reads one rank's shard from the file into memory, in the order of the shard's elements. */
typedef struct reader {
    const char *path;
    int file;
    int64_t offset;    /* bytes in the file before the tensor */
    tsr_dtype dtype;   /* the file's dtype */
    size_t file_bytes; /* bytes of one element in the file */
    const tsr_layout *layout;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_device_ops ops;
    char *data;    /* where the next elements go */
    char *stage;   /* elements that wait for conversion; NULL if the file's dtype is the layout's */
    size_t staged; /* bytes in `stage` */
    int64_t bytes_read;
} reader;

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
    const int64_t count = (int64_t)(r->staged / r->file_bytes);
    TSR_TRY(
        r->ops.table->convert(r->ops.self, r->ops.index, r->data, r->layout->dtype, r->stage, r->dtype, count, NULL));
    r->data += (size_t)count * r->layout->element_bytes;
    r->staged = 0;
    return TSR_OK;
}

/* Reads `count` elements that are contiguous in the file, from element `first` of the tensor on. */
static tsr_status read_run(void *arg, int64_t first, int64_t count)
{
    reader *const r = arg;
    int64_t at = r->offset + first * (int64_t)r->file_bytes;
    size_t bytes = (size_t)count * r->file_bytes;
    if (!r->stage) {
        TSR_TRY(read_bytes(r, at, r->data, bytes));
        r->data += bytes;
        return TSR_OK;
    }
    while (bytes > 0) {
        if (r->staged == STAGE_BYTES)
            TSR_TRY(flush_stage(r));
        const size_t part = bytes < STAGE_BYTES - r->staged ? bytes : STAGE_BYTES - r->staged;
        TSR_TRY(read_bytes(r, at, r->stage + r->staged, part));
        r->staged += part;
        at += (int64_t)part;
        bytes -= part;
    }
    return TSR_OK;
}

static tsr_status read_shard(reader *r)
{
    TSR_TRY(tsr_visit_runs(r->layout, r->coordinate, read_run, r));
    return r->stage ? flush_stage(r) : TSR_OK;
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

/* Checks that the file has the whole tensor, even if this rank reads little of it, so that every
 * rank comes to the same result. */
static tsr_status check_size(const reader *r)
{
    struct stat info;
    if (fstat(r->file, &info) != 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", r->path, strerror(errno));
    int64_t end;
    if (!tsr_file_end(r->layout, r->file_bytes, 0, &end))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 bytes", r->path);
    if (!tsr_add_sizes(end, r->offset, &end) || (S_ISREG(info.st_mode) && end > info.st_size))
        return tsr_status_set(TSR_ERROR_IO, "%s has %lld bytes, but the tensor at byte %lld would end beyond", r->path,
                              (long long)info.st_size, (long long)r->offset);
    return TSR_OK;
}

static tsr_status read_into(reader *r, const tsr_tensor *local)
{
    TSR_TRY(check_size(r));
    tsr_reduce_op op;
    if (!holds_value(r->layout, r->coordinate, &op))
        return tsr_device_fill_identity(&r->ops, local, op, NULL);
    r->data = local->data;
    if (r->dtype == r->layout->dtype)
        return read_shard(r);
    void *stage;
    TSR_TRY(tsr_allocate(r->layout->context, STAGE_BYTES, &stage));
    r->stage = stage;
    const tsr_status status = read_shard(r);
    tsr_release(r->layout->context, stage);
    return status;
}

static tsr_status open_and_read(reader *r, const tsr_tensor *local)
{
    /* O_NONBLOCK, because opening a pipe must not wait for its writer; pread() then refuses the
     * pipe. */
    r->file = open(r->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (r->file < 0)
        return tsr_status_set(TSR_ERROR_IO, "%s: %s", r->path, strerror(errno));
    const tsr_status status = read_into(r, local);
    close(r->file);
    return status;
}

static tsr_status check_call(const char *path, int64_t offset, tsr_dtype dtype, const tsr_layout *layout, bool has_out)
{
    if (!path || !layout || !has_out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_distribute_file: %s is NULL",
                              !path     ? "path"
                              : !layout ? "layout"
                                        : "out");
    TSR_TRY(tsr_check_communicates(layout->mesh, "tsr_distribute_file"));
    if (offset < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_distribute_file: offset %lld is negative", (long long)offset);
    if (!tsr_dtype_get(dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_distribute_file: dtype is %d, which is not a dtype", (int)dtype);
    if (!tsr_file_converts(dtype, layout->dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "tsr_distribute_file: from %s to %s: only floating types are converted",
                              tsr_dtype_name(dtype), tsr_dtype_name(layout->dtype));
    return TSR_OK;
}

tsr_status tsr_distribute_file(const char *path, int64_t offset, tsr_dtype dtype, const tsr_layout *layout,
                               int64_t *bytes_read, tsr_dtensor **out)
{
    TSR_TRY(check_call(path, offset, dtype, layout, out != NULL));
    tsr_dtensor *y;
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &y));
    reader r = {.path = path, .offset = offset, .dtype = dtype, .file_bytes = tsr_dtype_bytes(dtype), .layout = layout};
    r.ops = tsr_device_resolve(layout->context, y->local.device);
    tsr_status status = TSR_OK;
    if (tsr_mesh_locate(layout->mesh, tsr_comm_rank(tsr_mesh_comm(layout->mesh)), r.coordinate))
        status = open_and_read(&r, &y->local);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(y);
        return status;
    }
    if (bytes_read)
        *bytes_read = r.bytes_read;
    *out = y;
    return TSR_OK;
}
