#include <tessera/npy.h>
#include <tessera/safetensors.h>
#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

#define CALL     "tsr_safetensors_restore"
#define NPY_CALL "tsr_npy_restore"

/* Room for a shape in a sentence: 8 sizes of 19 digits, and what is between them. */
#define SHAPE_BYTES 192

/* A tensor in a file. */
typedef struct stored {
    const char *what; /* for sentences */
    const char *path;
    int ndim;
    const int64_t *shape;
    int64_t offset;
    tsr_dtype dtype;
} stored;

static const char *print_shape(int ndim, const int64_t *shape, char *text)
{
    int used = snprintf(text, SHAPE_BYTES, "%s", ndim > 0 ? "" : "a scalar");
    for (int d = 0; d < ndim; d++)
        used += snprintf(text + used, (size_t)(SHAPE_BYTES - used), d > 0 ? "x%lld" : "%lld", (long long)shape[d]);
    return text;
}

/* Checks all that can be known before an element is read. */
static tsr_status check_target(const char *call, const stored *s, const tsr_dtensor *x)
{
    char has[SHAPE_BYTES], wanted[SHAPE_BYTES];
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    const int ndim = tsr_layout_ndim(layout);
    const int64_t *const shape = tsr_layout_shape(layout);
    const tsr_dtype_info *const from = tsr_dtype_get(s->dtype), *const to = tsr_dtype_get(tsr_layout_dtype(layout));
    if (s->ndim != ndim || (ndim > 0 && memcmp(s->shape, shape, (size_t)ndim * sizeof *shape) != 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s: %.200s is %s, but the dtensor for it is %s", call, s->path,
                              s->what, print_shape(s->ndim, s->shape, has), print_shape(ndim, shape, wanted));
    if (from != to && (from->kind != TSR_CLASS_FLOAT || to->kind != TSR_CLASS_FLOAT))
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s: %s: %.200s is of %s, but the dtensor for it of %s: only floating types are converted", call, s->path,
            s->what, from->name, to->name);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    if (tsr_tensor_overlaps(&local))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: elements of the dtensor for %.200s share memory", call, s->what);
    return TSR_OK;
}

static stored stored_in_npy(const char *path, const tsr_npy *file)
{
    const tsr_npy_header *const h = tsr_npy_get_header(file);
    return (stored){"its tensor", path, h->ndim, h->shape, h->data, h->dtype};
}

static tsr_status open_npy(const char *path, tsr_dtype dtype, const tsr_dtensor *x, tsr_npy **out)
{
    const tsr_dtype kept = dtype == TSR_DTYPE_NONE ? tsr_layout_dtype(tsr_dtensor_layout(x)) : dtype;
    if (!path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, NPY_CALL ": path is NULL");
    TSR_TRY(tsr_npy_open(path, kept, out));
    const stored s = stored_in_npy(path, *out);
    return check_target(NPY_CALL, &s, x);
}

/* Copies this rank's elements of a new dtensor on the host to one on a device. */
static tsr_status copy_to_device(const tsr_dtensor *from, const tsr_dtensor *to)
{
    const tsr_tensor host = tsr_dtensor_to_local(from), own = tsr_dtensor_to_local(to);
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(own.device.driver, &self);
    int64_t count;
    TSR_TRY(tsr_tensor_count(&host, &count));
    if (count == 0)
        return TSR_OK;
    TSR_TRY(table->copy(self, own.device.index, own.data, host.data, (size_t)count * tsr_dtype_bytes(own.dtype),
                        TSR_COPY_FROM_HOST, NULL));
    return table->stream_synchronize ? table->stream_synchronize(self, own.device.index, NULL) : TSR_OK;
}

/* Moves a new dtensor from the host to `device`. */
static tsr_status move_to_device(tsr_device device, tsr_dtensor **x)
{
    tsr_dtensor *moved;
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(*x), device, &moved));
    const tsr_status status = copy_to_device(*x, moved);
    tsr_dtensor_destroy(*x);
    *x = moved;
    return status;
}

/* Reads this rank's part. Elements of another order than the library's become a new dtensor on x's
 * device, `*turned`. */
static tsr_status read_npy(const char *path, const tsr_npy *file, tsr_dtensor *x, tsr_dtensor **turned)
{
    const tsr_npy_header *const h = tsr_npy_get_header(file);
    const tsr_device device = tsr_dtensor_to_local(x).device;
    if (!h->fortran && !h->big_endian)
        return tsr_distribute_file_into(path, h->data, h->dtype, NULL, x);
    TSR_TRY(tsr_npy_read(file, tsr_dtensor_layout(x), NULL, turned));
    return device.driver ? move_to_device(device, turned) : TSR_OK;
}

tsr_status tsr_npy_restore(tsr_dtensor *x, const char *path, tsr_dtype dtype)
{
    tsr_npy *file = NULL;
    tsr_dtensor *turned = NULL;
    if (!x)
        return tsr_status_set(TSR_ERROR_ARGUMENT, NPY_CALL ": x is NULL");
    tsr_comm *const comm = tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x)));
    tsr_status status = tsr_comm_share_status(comm, NPY_CALL, open_npy(path, dtype, x, &file));
    if (status == TSR_OK)
        status = tsr_comm_share_status(comm, NPY_CALL, read_npy(path, file, x, &turned));
    if (status == TSR_OK && turned)
        status = tsr_redistribute_into(turned, x, NULL);
    tsr_dtensor_destroy(turned);
    tsr_npy_destroy(file);
    return status;
}

static tsr_comm *comm_of(const tsr_dtensor *x)
{
    return tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x)));
}

static tsr_comm *first_comm(size_t count, const tsr_safetensors_target *targets)
{
    for (size_t i = 0; targets && i < count; i++)
        if (targets[i].x)
            return comm_of(targets[i].x);
    return NULL;
}

static tsr_status check_targets(const tsr_safetensors *file, const char *path, size_t count,
                                const tsr_safetensors_target *targets)
{
    for (size_t i = 0; i < count; i++) {
        const tsr_safetensors_entry *const e = tsr_safetensors_find(file, targets[i].name);
        if (!e)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s: there is no tensor %.200s", path, targets[i].name);
        const stored s = {e->name, e->path, e->ndim, e->shape, e->offset, e->dtype};
        TSR_TRY(check_target(CALL, &s, targets[i].x));
    }
    return TSR_OK;
}

static tsr_status open_safetensors(const char *path, size_t count, const tsr_safetensors_target *targets,
                                   tsr_safetensors **out)
{
    const tsr_comm *const comm = first_comm(count, targets);
    if (!path)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": path is NULL");
    for (size_t i = 0; i < count; i++) {
        if (!targets[i].x || !targets[i].name)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": targets[%zu].%s is NULL", i, targets[i].x ? "name" : "x");
        if (comm_of(targets[i].x) != comm)
            return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": targets[%zu].x has another communicator than the first",
                                  i);
    }
    TSR_TRY(tsr_safetensors_open(path, out));
    return check_targets(*out, path, count, targets);
}

static tsr_status read_targets(const tsr_safetensors *file, size_t count, const tsr_safetensors_target *targets)
{
    for (size_t i = 0; i < count; i++) {
        const tsr_safetensors_entry *const e = tsr_safetensors_find(file, targets[i].name);
        TSR_TRY(tsr_distribute_file_into(e->path, e->offset, e->dtype, NULL, targets[i].x));
    }
    return TSR_OK;
}

tsr_status tsr_safetensors_restore(const char *path, size_t count, const tsr_safetensors_target *targets)
{
    tsr_safetensors *file = NULL;
    tsr_comm *const comm = first_comm(count, targets);
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": there is no dtensor: %s",
                              !targets     ? "targets is NULL"
                              : count == 0 ? "count is 0"
                                           : "every x is NULL");
    tsr_status status = tsr_comm_share_status(comm, CALL, open_safetensors(path, count, targets, &file));
    if (status == TSR_OK)
        status = tsr_comm_share_status(comm, CALL, read_targets(file, count, targets));
    tsr_safetensors_destroy(file);
    return status;
}
