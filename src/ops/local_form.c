#include "ops/local_form.h"

#include "ops/layer.h"
#include "ops/numbers.h"

#include <tessera/sys/device.h>

#include <stdio.h>

tsr_status tsr_local_form_take(tsr_layout *layout, tsr_local_form *out)
{
    out->layout = layout;
    out->ndim = tsr_layout_ndim(layout);
    return tsr_layout_local(layout, NULL, out->shape, NULL);
}

tsr_status tsr_local_form_retain(const tsr_layout *layout, tsr_local_form *out)
{
    return layout ? tsr_local_form_take(tsr_layout_retain((tsr_layout *)layout), out) : TSR_OK;
}

void tsr_local_form_release(tsr_local_form *form)
{
    tsr_layout_destroy(form->layout);
}

tsr_tensor tsr_local_form_tensor(const tsr_local_form *form, void *data, tsr_device device)
{
    tsr_tensor tensor = tsr_tensor_contiguous(data, tsr_layout_dtype(form->layout), form->ndim, form->shape);
    tensor.device = device;
    return tensor;
}

/* On a rank outside the mesh the local tensor has one dim of size 0. */
tsr_status tsr_local_form_borrow(const tsr_local_form *form, bool inside, void *memory, tsr_device device,
                                 tsr_dtensor **out)
{
    static const int64_t nothing[] = {0};
    tsr_tensor local = tsr_local_form_tensor(form, memory, device);
    if (!inside) {
        local = tsr_tensor_contiguous(memory, local.dtype, 1, nothing);
        local.device = device;
    }
    return tsr_dtensor_from_local(&local, form->layout, NULL, out);
}

size_t tsr_local_form_bytes(const tsr_local_form *form)
{
    size_t bytes = form->layout ? tsr_dtype_bytes(tsr_layout_dtype(form->layout)) : 0;
    for (int dim = 0; dim < form->ndim; dim++)
        bytes *= (size_t)form->shape[dim];
    return tsr_aligned_bytes(bytes);
}

static tsr_status refuse_tensor(const tsr_local_form *form, const char *caller, const char *name,
                                const tsr_tensor *tensor)
{
    char wanted[256] = "", given[256] = "";
    size_t a = 0, b = 0;
    for (int dim = 0; dim < form->ndim; dim++)
        a += (size_t)snprintf(wanted + a, sizeof wanted - a, "%s%lld", dim ? "x" : "", (long long)form->shape[dim]);
    for (int dim = 0; dim < tensor->ndim && dim < TSR_MAX_DIMS; dim++)
        b += (size_t)snprintf(given + b, sizeof given - b, "%s%lld", dim ? "x" : "", (long long)tensor->shape[dim]);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %s %s, but the plan's layout gives this rank %s %s", caller,
                          name, tsr_dtype_name(tensor->dtype), given, tsr_dtype_name(tsr_layout_dtype(form->layout)),
                          wanted);
}

static tsr_status check_device(const char *caller, const char *name, tsr_device given, tsr_device wanted)
{
    void *self;
    if (tsr_device_same(given, wanted))
        return TSR_OK;
    const char *here = tsr_device_driver_table(given.driver, &self)->name,
               *there = tsr_device_driver_table(wanted.driver, &self)->name;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT, "%s: %s is on device %s:%d, but the plan is for %s:%d%s; make a plan for that device",
        caller, name, here, given.index, there, wanted.index, given.index == wanted.index ? " of another driver" : "");
}

tsr_status tsr_local_form_check(const tsr_local_form *form, const char *caller, const char *name,
                                const tsr_tensor *tensor, tsr_device device)
{
    if (!form->layout)
        return tensor ? tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is given, but the plan was made without it", caller,
                                       name)
                      : TSR_OK;
    if (!tensor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL, but the plan has a layout for it", caller, name);
    bool empty = false, same = tensor->ndim == form->ndim && tensor->dtype == tsr_layout_dtype(form->layout);
    for (int dim = 0; same && dim < form->ndim; dim++) {
        same = tensor->shape[dim] == form->shape[dim];
        empty = empty || form->shape[dim] == 0;
    }
    if (!same)
        return refuse_tensor(form, caller, name, tensor);
    if (!tensor->data && !empty)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has no data", caller, name);
    return check_device(caller, name, tensor->device, device);
}

tsr_status tsr_local_form_check_result(const tsr_local_form *form, const char *caller, const char *name,
                                       const tsr_tensor *tensor, tsr_device device)
{
    TSR_TRY(tsr_local_form_check(form, caller, name, tensor, device));
    if (!form->layout || !tsr_tensor_overlaps(tensor))
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "%s: elements of %s, which is written, share memory; they do not if each stride is larger than what the "
        "smaller strides span",
        caller, name);
}
