#include "base/checked.h"
#include "base/memory/memory.h"
#include "device/allocation.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "tensor/dtensor.h"
#include "tensor/input.h"
#include "tensor/runs.h"

#include <tessera/sys/status.h>

/* Bytes of the file's elements that are converted, or copied to a device, at a time. */
#define STAGE_BYTES ((size_t)256 * 1024)

/* Reads one rank's shard from files into contiguous memory, in the order of the shard's
 * elements. */
typedef struct reader {
    const char *call; /* the public function, for error sentences */
    const tsr_file_part *parts;
    size_t count;
    const tsr_layout *layout;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_device_ops ops;  /* of the local tensor's device */
    tsr_device_ops host; /* converts */
    bool on_device;
    tsr_input input;
    size_t part;        /* that was read last */
    int64_t part_first; /* the tensor's element with which it begins */
    char *data;         /* where the next elements go */
    char *stage;        /* elements as a file has them; NULL if all are read to where they go */
    tsr_dtype dtype;    /* of the elements in `stage` */
    size_t staged;      /* bytes in `stage` */
    char *converted;    /* host memory for elements of a device that are converted; NULL: none is */
} reader;

static tsr_status flush_stage(reader *r)
{
    if (r->staged == 0)
        return TSR_OK;
    const int64_t count = (int64_t)(r->staged / tsr_dtype_bytes(r->dtype));
    const size_t bytes = (size_t)count * r->layout->element_bytes;
    const bool converts = r->dtype != r->layout->dtype;
    char *const to = r->on_device ? r->converted : r->data;
    if (converts)
        TSR_TRY(
            r->host.table->convert(r->host.self, r->host.index, to, r->layout->dtype, r->stage, r->dtype, count, NULL));
    if (r->on_device) {
        TSR_TRY(r->ops.table->copy(r->ops.self, r->ops.index, r->data, converts ? r->converted : r->stage, bytes,
                                   TSR_COPY_FROM_HOST, NULL));
        TSR_TRY(tsr_device_settle(&r->ops, NULL, TSR_OK));
    }
    r->data += bytes;
    r->staged = 0;
    return TSR_OK;
}

/* Reads bytes of elements that do not go where they belong at once. */
static tsr_status read_staged(reader *r, int64_t at, size_t bytes)
{
    while (bytes > 0) {
        if (r->staged == STAGE_BYTES)
            TSR_TRY(flush_stage(r));
        const size_t some = bytes < STAGE_BYTES - r->staged ? bytes : STAGE_BYTES - r->staged;
        TSR_TRY(tsr_input_read(&r->input, at, r->stage + r->staged, some));
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
    TSR_TRY(tsr_input_open(&r->input, part->path));
    if (part->dtype != r->layout->dtype || r->on_device)
        return read_staged(r, at, bytes);
    TSR_TRY(tsr_input_read(&r->input, at, r->data, bytes));
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

/* Checks that the part's file has all of it. */
static tsr_status check_size(reader *r, const tsr_file_part *part)
{
    int64_t bytes;
    if (!tsr_multiply((int64_t)tsr_dtype_bytes(part->dtype), part->count, &bytes))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a tensor of more than 2^63 - 1 bytes", part->path);
    return tsr_input_check(&r->input, part->path, part->offset, bytes);
}

/* The most bytes that a full stage becomes when it is converted; 0: no part is. */
static size_t most_converted(const reader *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->count; i++) {
        const size_t bytes = STAGE_BYTES / tsr_dtype_bytes(r->parts[i].dtype) * r->layout->element_bytes;
        if (r->parts[i].dtype != r->layout->dtype && bytes > most)
            most = bytes;
    }
    return most;
}

/* Reads the shard into contiguous memory at `data`, by way of host memory where that is needed. */
static tsr_status read_to(reader *r, char *data)
{
    tsr_context *const context = r->layout->context;
    const size_t most = most_converted(r);
    void *stage = NULL, *converted = NULL;
    tsr_status status = TSR_OK;
    if (most > 0 || r->on_device)
        status = tsr_allocate(context, STAGE_BYTES, &stage);
    if (status == TSR_OK && most > 0 && r->on_device)
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

/* Checks first that the files have the whole tensor, even if this rank reads little of it, so that
 * every rank comes to the same result. */
static tsr_status read_into(reader *r, const tsr_tensor *local)
{
    for (size_t i = 0; i < r->count; i++)
        TSR_TRY(check_size(r, &r->parts[i]));
    tsr_reduce_op op;
    if (!tsr_input_holds_value(r->layout, r->coordinate, &op))
        return tsr_device_settle(&r->ops, NULL, tsr_device_fill_identity(&r->ops, local, op, NULL));
    return tsr_tensor_is_contiguous(local) ? read_to(r, local->data) : read_strided(r, local);
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

/* Makes a file's tensor one part, whose `count` is that of the layout. */
static tsr_status count_part(const reader *r, tsr_file_part *part)
{
    if (!tsr_file_end(r->layout, 1, 0, &part->count))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: a tensor of more than 2^63 - 1 elements", r->call,
                              part->path);
    return TSR_OK;
}

/* Reads this rank's part of `y`; a rank outside the mesh has none. */
static tsr_status read_own(reader *r, const tsr_dtensor *y, int64_t *bytes_read)
{
    const tsr_layout *const layout = r->layout;
    tsr_status status = TSR_OK;
    r->ops = tsr_device_resolve(layout->context, y->local.device);
    r->host = tsr_device_resolve(layout->context, tsr_device_host());
    r->on_device = y->local.device.driver != NULL;
    if (tsr_mesh_locate(layout->mesh, tsr_comm_rank(tsr_mesh_comm(layout->mesh)), r->coordinate))
        status = read_into(r, &y->local);
    tsr_input_close(&r->input);
    if (status == TSR_OK && bytes_read)
        *bytes_read = r->input.bytes_read;
    return status;
}

static tsr_status distribute(reader *r, int64_t *bytes_read, tsr_dtensor **out)
{
    tsr_dtensor *y;
    TSR_TRY(tsr_check_communicates(r->layout->mesh, r->call));
    TSR_TRY(check_parts(r));
    TSR_TRY(tsr_dtensor_create(r->layout, tsr_device_host(), &y));
    const tsr_status status = read_own(r, y, bytes_read);
    if (status == TSR_OK)
        *out = y;
    else
        tsr_dtensor_destroy(y);
    return status;
}

tsr_status tsr_distribute_file_parts(size_t count, const tsr_file_part *parts, const tsr_layout *layout,
                                     int64_t *bytes_read, tsr_dtensor **out)
{
    reader r = {.call = "tsr_distribute_file_parts", .parts = parts, .count = count, .layout = layout};
    if ((!parts && count > 0) || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r.call,
                              !layout ? "layout"
                              : !out  ? "out"
                                      : "parts");
    return distribute(&r, bytes_read, out);
}

tsr_status tsr_distribute_file(const char *path, int64_t offset, tsr_dtype dtype, const tsr_layout *layout,
                               int64_t *bytes_read, tsr_dtensor **out)
{
    tsr_file_part part = {path, offset, dtype, 0};
    reader r = {.call = "tsr_distribute_file", .parts = &part, .count = 1, .layout = layout};
    if (!path || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r.call,
                              !path     ? "path"
                              : !layout ? "layout"
                                        : "out");
    TSR_TRY(count_part(&r, &part));
    return distribute(&r, bytes_read, out);
}

tsr_status tsr_distribute_file_into(const char *path, int64_t offset, tsr_dtype dtype, int64_t *bytes_read,
                                    tsr_dtensor *out)
{
    tsr_file_part part = {path, offset, dtype, 0};
    reader r = {.call = "tsr_distribute_file_into", .parts = &part, .count = 1};
    if (!path || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", r.call, !path ? "path" : "out");
    r.layout = out->layout;
    TSR_TRY(count_part(&r, &part));
    TSR_TRY(check_parts(&r));
    if (tsr_tensor_overlaps(&out->local))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: elements of out share memory, so it can only be read", r.call);
    return read_own(&r, out, bytes_read);
}
