#include "tensor/dtensor.h"

#include "base/checked.h"
#include "base/options.h"
#include "comm/core/comm.h"
#include "comm/core/traits.h"
#include "comm/meshes/sets.h"
#include "device/allocation.h"
#include "device/driver.h"
#include "mesh/mesh.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "redistribute/execute/execution.h"
#include "redistribute/execute/prepare.h"
#include "tensor/rows/row_table.h"

#include <tessera/sys/status.h>

tsr_status tsr_check_communicates(const tsr_mesh *mesh, const char *call)
{
    TSR_TRY(tsr_mesh_check_comm(mesh, call));
    return tsr_comm_check_open(tsr_mesh_comm(mesh), call);
}

/* This rank's shard by the layout, as a contiguous tensor without data; on a rank outside the mesh
 * its shape is {0}. */
static tsr_tensor local_tensor(const tsr_layout *layout, tsr_device device)
{
    int64_t coordinate[TSR_MAX_DIMS], shape[TSR_MAX_DIMS];
    const tsr_comm *comm = tsr_mesh_comm(layout->mesh);
    const bool inside = comm && tsr_mesh_locate(layout->mesh, tsr_comm_rank(comm), coordinate);
    const int ndim = tsr_layout_local_shape(layout, inside ? coordinate : NULL, shape);
    tsr_tensor local = tsr_tensor_contiguous(NULL, layout->dtype, ndim, shape);
    local.device = device;
    return local;
}

tsr_status tsr_dtensor_wrap(const tsr_layout *layout, const tsr_tensor *local, const tsr_dtensor *base,
                            tsr_dtensor **out)
{
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(layout->context, sizeof(tsr_dtensor), &memory));
    tsr_dtensor *dtensor = memory;
    dtensor->references = 1;
    dtensor->layout = tsr_layout_retain((tsr_layout *)layout);
    dtensor->comm = tsr_mesh_comm(layout->mesh);
    dtensor->local = *local;
    dtensor->base = tsr_dtensor_retain((tsr_dtensor *)base);
    tsr_device_driver_retain(local->device.driver);
    *out = dtensor;
    return TSR_OK;
}

/* The communicator in whose shared memory the dtensor lies, so that ranks in other processes reach
 * it; NULL: it is not shared. */
static tsr_comm *sharing_of(const tsr_dtensor *dtensor)
{
    return tsr_comm_shares_some(dtensor->comm) && !dtensor->local.device.driver ? dtensor->comm : NULL;
}

static tsr_status allocate_bytes(const tsr_dtensor *dtensor, size_t bytes, void **out)
{
    tsr_comm *comm = sharing_of(dtensor);
    if (comm && bytes > 0)
        return tsr_comm_alloc_shared(comm, bytes, out);
    return tsr_device_allocate(dtensor->layout->context, dtensor->local.device, bytes, out);
}

static void release_bytes(const tsr_dtensor *dtensor)
{
    tsr_comm *comm = sharing_of(dtensor);
    if (comm)
        tsr_comm_free(comm, dtensor->local.data, dtensor->owned_bytes);
    else
        tsr_device_release(dtensor->layout->context, dtensor->local.device, dtensor->local.data, dtensor->owned_bytes);
}

static tsr_status allocate_local(tsr_dtensor *dtensor)
{
    int64_t count;
    TSR_TRY(tsr_tensor_count(&dtensor->local, &count));
    const size_t bytes = (size_t)count * dtensor->layout->element_bytes;
    TSR_TRY(allocate_bytes(dtensor, bytes, &dtensor->local.data));
    dtensor->owned_bytes = bytes;
    return TSR_OK;
}

static tsr_status check_device(const char *name, const tsr_layout *layout, tsr_device device)
{
    if (!tsr_host_is_meant(device, NULL))
        return tsr_refuse_host(name, device, NULL);
    const tsr_device_ops ops = tsr_device_resolve(layout->context, device);
    int count = 0;
    const char *reason = NULL;
    TSR_TRY(ops.table->count(ops.self, &count, &reason));
    if (device.index >= 0 && device.index < count)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: device is %s:%d, but there %s %d of the kind, counted from 0%s%s",
                          name, ops.table->name, device.index, count == 1 ? "is" : "are", count, reason ? ": " : "",
                          reason ? reason : "");
}

tsr_status tsr_dtensor_create(const tsr_layout *layout, tsr_device device, tsr_dtensor **out)
{
    if (!layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_create: %s is NULL", !layout ? "layout" : "out");
    TSR_TRY(tsr_check_communicates(layout->mesh, "tsr_dtensor_create"));
    TSR_TRY(check_device("tsr_dtensor_create", layout, device));
    const tsr_tensor local = local_tensor(layout, device);
    tsr_dtensor *dtensor;
    TSR_TRY(tsr_dtensor_wrap(layout, &local, NULL, &dtensor));
    const tsr_status status = allocate_local(dtensor);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(dtensor);
        return status;
    }
    *out = dtensor;
    return TSR_OK;
}

static tsr_status check_local(const char *call, const tsr_tensor *local, const tsr_layout *layout)
{
    const tsr_tensor expected = local_tensor(layout, local->device);
    if (local->dtype != layout->dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local is of %s, but the layout is of %s", call,
                              tsr_dtype_name(local->dtype), tsr_dtype_name(layout->dtype));
    bool fits = local->ndim == expected.ndim, empty = false;
    for (int dim = 0; dim < expected.ndim; dim++) {
        fits = fits && local->shape[dim] == expected.shape[dim];
        empty |= expected.shape[dim] == 0;
    }
    char have[TSR_SHAPE_TEXT], want[TSR_SHAPE_TEXT], text[512];
    if (!fits && local->ndim >= 0 && local->ndim <= TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local has shape %s, but %s gives this rank %s", call,
                              tsr_shape_print(local->ndim, local->shape, have),
                              tsr_layout_describe(layout, text, sizeof text),
                              tsr_shape_print(expected.ndim, expected.shape, want));
    if (!fits)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local has %d dims, which no tensor has", call, local->ndim);
    for (int dim = 0; dim < expected.ndim; dim++)
        if (local->strides[dim] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local's dim %d has stride %lld: strides are 0 or more", call,
                                  dim, (long long)local->strides[dim]);
    if (!empty && !local->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local has no data, but this rank's shard %s is not empty", call,
                              tsr_shape_print(expected.ndim, expected.shape, want));
    return TSR_OK;
}

static void describe_layout(const void *layout, char *text, size_t capacity)
{
    tsr_layout_describe(layout, text, capacity);
}

static tsr_status agree_on_layout(const tsr_layout *layout, tsr_status local)
{
    tsr_comm *const comm = tsr_mesh_comm(layout->mesh);
    TSR_TRY(tsr_comm_enter(comm, "tsr_dtensor_from_local"));
    return tsr_comm_leave(comm, tsr_mesh_agree(layout->mesh, layout->hash, local, describe_layout, layout));
}

tsr_status tsr_dtensor_from_local(const tsr_tensor *local, const tsr_layout *layout,
                                  const tsr_from_local_options *given, tsr_dtensor **out)
{
    if (!local || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_dtensor_from_local: %s is NULL",
                              !local    ? "local"
                              : !layout ? "layout"
                                        : "out");
    tsr_from_local_options options = TSR_FROM_LOCAL_OPTIONS_INIT;
    TSR_TRY(tsr_options_read("tsr_dtensor_from_local", given, &options, sizeof options));
    TSR_TRY(tsr_check_communicates(layout->mesh, "tsr_dtensor_from_local"));
    tsr_status status = check_device("tsr_dtensor_from_local: local", layout, local->device);
    if (status == TSR_OK)
        status = check_local("tsr_dtensor_from_local", local, layout);
    tsr_dtensor *dtensor = NULL;
    if (status == TSR_OK)
        status = tsr_dtensor_wrap(layout, local, NULL, &dtensor);
    if (options.check)
        status = agree_on_layout(layout, status);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(dtensor);
        return status;
    }
    *out = dtensor;
    return TSR_OK;
}

/* The bytes from a tensor's first element to behind its last one; 0: it is empty. The strides are
 * not negative. False: their number overflows. */
static bool measure_span(const tsr_tensor *tensor, int64_t *bytes)
{
    int64_t last = 0;
    *bytes = 0;
    for (int dim = 0; dim < tensor->ndim; dim++) {
        int64_t steps;
        if (tensor->shape[dim] == 0)
            return true;
        if (!tsr_multiply(tensor->shape[dim] - 1, tensor->strides[dim], &steps) || !tsr_add_sizes(last, steps, &last))
            return false;
    }
    return tsr_add_sizes(last, 1, &last) && tsr_multiply(last, (int64_t)tsr_dtype_bytes(tensor->dtype), bytes);
}

/* True if all elements of `local` are among the bytes of `parent`. */
static bool is_inside(const tsr_tensor *local, const tsr_tensor *parent)
{
    int64_t own, all;
    if (!measure_span(local, &own) || !measure_span(parent, &all))
        return false;
    const uintptr_t first = (uintptr_t)local->data, begin = (uintptr_t)parent->data;
    return own == 0 || (own <= all && first >= begin && first - begin <= (uintptr_t)(all - own));
}

static tsr_status check_view(const char *call, const tsr_dtensor *parent, const tsr_tensor *local,
                             const tsr_layout *layout)
{
    if (tsr_mesh_comm(layout->mesh) != parent->comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the layout's mesh is over another communicator than parent",
                              call);
    if (local->device.driver != parent->local.device.driver || local->device.index != parent->local.device.index)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local is on another device than parent", call);
    if (layout->dtype != parent->layout->dtype)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the layout is of %s, but parent is of %s", call,
                              tsr_dtype_name(layout->dtype), tsr_dtype_name(parent->layout->dtype));
    TSR_TRY(check_local(call, local, layout));
    if (is_inside(local, &parent->local))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: local has elements outside of parent's local tensor", call);
}

tsr_status tsr_dtensor_view(const tsr_dtensor *parent, const tsr_tensor *local, const tsr_layout *layout,
                            tsr_dtensor **out)
{
    static const char call[] = "tsr_dtensor_view";
    if (!parent || !local || !layout || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call,
                              !parent   ? "parent"
                              : !local  ? "local"
                              : !layout ? "layout"
                                        : "out");
    TSR_TRY(tsr_check_communicates(layout->mesh, call));
    TSR_TRY(check_view(call, parent, local, layout));
    return tsr_dtensor_wrap(layout, local, parent->base ? parent->base : parent, out);
}

tsr_dtensor *tsr_dtensor_retain(tsr_dtensor *dtensor)
{
    if (dtensor)
        tsr_references_add(&dtensor->references);
    return dtensor;
}

void tsr_dtensor_destroy(tsr_dtensor *dtensor)
{
    if (!dtensor || !tsr_references_drop(&dtensor->references))
        return;
    tsr_layout *layout = dtensor->layout;
    tsr_dtensor *base = dtensor->base;
    if (dtensor->owned_bytes > 0)
        release_bytes(dtensor);
    tsr_device_driver_release(dtensor->local.device.driver);
    tsr_row_table_destroy(dtensor->row_table);
    tsr_release(layout->context, dtensor);
    tsr_layout_destroy(layout);
    tsr_dtensor_destroy(base);
}

const tsr_layout *tsr_dtensor_layout(const tsr_dtensor *dtensor)
{
    return dtensor->layout;
}

tsr_tensor tsr_dtensor_to_local(const tsr_dtensor *dtensor)
{
    return dtensor->local;
}

tsr_status tsr_name_call(const char *call, tsr_status status)
{
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "%s: %s", call, tsr_status_message());
}
