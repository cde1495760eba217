#include "base/checked.h"
#include "base/memory/memory.h"
#include "device/allocation.h"
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

/* Bytes of the file's elements that are converted, or copied to a device, at a time. */
#define STAGE_BYTES ((size_t)256 * 1024)

/* Reads one rank's shard from the file into contiguous memory, in the order of the shard's
 * elements. */
typedef struct reader {
    const char *call; /* the user's, for sentences */
    const char *path;
    int file;
    int64_t offset;    /* bytes in the file before the tensor */
    tsr_dtype dtype;   /* the file's dtype */
    size_t file_bytes; /* bytes of one element in the file */
    const tsr_layout *layout;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_device_ops ops;  /* of the local tensor's device */
    tsr_device_ops host; /* converts */
    bool on_device;
    char *data;      /* where the next elements go */
    char *stage;     /* elements as the file has them; NULL if they are read to where they go */
    size_t staged;   /* bytes in `stage` */
    char *converted; /* host memory for elements of a device that are converted; NULL: none is */
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
    const size_t bytes = (size_t)count * r->layout->element_bytes;
    char *const to = r->on_device ? r->converted : r->data;
    if (r->dtype != r->layout->dtype)
        TSR_TRY(
            r->host.table->convert(r->host.self, r->host.index, to, r->layout->dtype, r->stage, r->dtype, count, NULL));
    if (r->on_device) {
        TSR_TRY(r->ops.table->copy(r->ops.self, r->ops.index, r->data, r->converted ? r->converted : r->stage, bytes,
                                   TSR_COPY_FROM_HOST, NULL));
        TSR_TRY(tsr_device_settle(&r->ops, NULL, TSR_OK));
    }
    r->data += bytes;
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

/* Reads the shard into contiguous memory at `data`, by way of host memory where that is needed. */
static tsr_status read_to(reader *r, char *data)
{
    tsr_context *const context = r->layout->context;
    const bool converts = r->dtype != r->layout->dtype;
    const size_t most = STAGE_BYTES / r->file_bytes * r->layout->element_bytes;
    void *stage = NULL, *converted = NULL;
    tsr_status status = TSR_OK;
    if (converts || r->on_device)
        status = tsr_allocate(context, STAGE_BYTES, &stage);
    if (status == TSR_OK && converts && r->on_device)
        status = tsr_allocate(context, most, &converted);
    r->data = data;
    r->stage = stage;
    r->converted = converted;
    if (status == TSR_OK)
        status = read_shard(r);
    tsr_release(context, converted);
    tsr_release(context, stage);
    return status;
}

/* Reads the shard into contiguous memory of the tensor's device, and copies it from there. */
static tsr_status read_strided(reader *r, const tsr_tensor *local)
{
    tsr_context *const context = r->layout->context;
    tsr_tensor packed = tsr_tensor_contiguous(NULL, local->dtype, local->ndim, local->shape);
    int64_t count;
    TSR_TRY(tsr_tensor_count(local, &count));
    const size_t bytes = (size_t)count * r->layout->element_bytes;
    packed.device = local->device;
    TSR_TRY(tsr_device_allocate(context, packed.device, bytes, &packed.data));
    tsr_status status = read_to(r, packed.data);
    if (status == TSR_OK)
        status = tsr_device_settle(&r->ops, NULL, tsr_device_copy_tensor(&r->ops, &packed, local, NULL));
    tsr_device_release(context, packed.device, packed.data, bytes);
    return status;
}

static tsr_status read_into(reader *r, const tsr_tensor *local)
{
    TSR_TRY(check_size(r));
    tsr_reduce_op op;
    if (!holds_value(r->layout, r->coordinate, &op))
        return tsr_device_settle(&r->ops, NULL, tsr_device_fill_identity(&r->ops, local, op, NULL));
    return tsr_tensor_is_contiguous(local) ? read_to(r, local->data) : read_strided(r, local);
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

static tsr_status check_call(const reader *r)
{
    if (r->offset < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: offset %lld is negative", r->call, (long long)r->offset);
    if (!tsr_dtype_get(r->dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dtype is %d, which is not a dtype", r->call, (int)r->dtype);
    if (!tsr_file_converts(r->dtype, r->layout->dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: from %s to %s: only floating types are converted", r->call,
                              tsr_dtype_name(r->dtype), tsr_dtype_name(r->layout->dtype));
    return TSR_OK;
}

/* Reads this rank's part of `y`; a rank outside the mesh has none. */
static tsr_status read_part(reader *r, const tsr_dtensor *y, int64_t *bytes_read)
{
    const tsr_layout *const layout = r->layout;
    r->file_bytes = tsr_dtype_bytes(r->dtype);
    r->ops = tsr_device_resolve(layout->context, y->local.device);
    r->host = tsr_device_resolve(layout->context, tsr_device_host());
    r->on_device = y->local.device.driver != NULL;
    if (tsr_mesh_locate(layout->mesh, tsr_comm_rank(tsr_mesh_comm(layout->mesh)), r->coordinate))
        TSR_TRY(open_and_read(r, &y->local));
    if (bytes_read)
        *bytes_read = r->bytes_read;
    return TSR_OK;
}

tsr_status tsr_distribute_file(const char *path, int64_t offset, tsr_dtype dtype, const tsr_layout *layout,
                               int64_t *bytes_read, tsr_dtensor **out)
{
    reader r = {.call = "tsr_distribute_file", .path = path, .offset = offset, .dtype = dtype, .layout = layout};
    if (!path || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_distribute_file: %s is NULL",
                              !path     ? "path"
                              : !layout ? "layout"
                                        : "out");
    TSR_TRY(tsr_check_communicates(layout->mesh, r.call));
    TSR_TRY(check_call(&r));
    tsr_dtensor *y;
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &y));
    const tsr_status status = read_part(&r, y, bytes_read);
    if (status == TSR_OK)
        *out = y;
    else
        tsr_dtensor_destroy(y);
    return status;
}

tsr_status tsr_distribute_file_into(const char *path, int64_t offset, tsr_dtype dtype, int64_t *bytes_read,
                                    tsr_dtensor *out)
{
    reader r = {.call = "tsr_distribute_file_into", .path = path, .offset = offset, .dtype = dtype};
    if (!path || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r.call, !path ? "path" : "out");
    r.layout = out->layout;
    TSR_TRY(check_call(&r));
    if (tsr_tensor_overlaps(&out->local))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: elements of out share memory, so it can only be read", r.call);
    return read_part(&r, out, bytes_read);
}
