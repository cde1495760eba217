#include "ops/eager/launch.h"

#include "ops/kernels/products/products.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <string.h>

static const char *name_of(tsr_device device)
{
    void *self;
    return tsr_device_driver_table(device.driver, &self)->name;
}

static tsr_status refuse(const char *caller, const tsr_op *op, tsr_device device)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: device \"%s\" has no kernel of %s for these dtypes, shapes and attributes; copy the "
                          "operands to the host, where every op runs",
                          caller, name_of(device), op->name);
}

tsr_status tsr_launch_copy(const tsr_tensor *from, const tsr_tensor *to, tsr_device device, tsr_stream stream)
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    tsr_box_copy box = {
        .dst = to->data, .src = from->data, .element_bytes = tsr_dtype_bytes(to->dtype), .ndim = to->ndim};
    if (to->data == from->data)
        return TSR_OK;
    for (int dim = 0; dim < to->ndim; dim++) {
        box.shape[dim] = to->shape[dim];
        box.dst_strides[dim] = to->strides[dim];
        box.src_strides[dim] = from->strides[dim];
    }
    return table->copy_boxes(self, device.index, &box, 1, stream);
}

/* True if a view can be copied to the result: that has other memory, or is the view. */
static bool can_be_copied(const tsr_tensor *view, const tsr_tensor *result)
{
    return view->data != result->data ||
           memcmp(view->strides, result->strides, (size_t)result->ndim * sizeof *result->strides) == 0;
}

/* The result as strides over the first input's memory; `*fits` false: no strides can say it, or a
 * copy would read what it has written. */
static tsr_status find_view(const tsr_op *op, const tsr_kernel_call *call, tsr_tensor *out, bool *fits)
{
    const tsr_tensor *const result = &call->outputs[0];
    *out = call->inputs[0];
    *fits = strcmp(op->name, "vary") == 0;
    if (!*fits && op->view) {
        out->ndim = result->ndim;
        memcpy(out->shape, result->shape, sizeof out->shape);
        *fits = true;
        TSR_TRY(op->view(call, out, fits));
    }
    *fits = *fits && can_be_copied(out, result);
    return TSR_OK;
}

static bool is_product(const tsr_op *op)
{
    return op->host == tsr_product_run;
}

static tsr_status ask_kernel(tsr_device device, const tsr_kernel_call *call, int64_t *bytes)
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    tsr_kernel_call asked = *call;
    asked.query = bytes;
    return table->launch ? table->launch(self, device.index, &asked, NULL) : TSR_ERROR_UNSUPPORTED;
}

tsr_status tsr_launch_find(const char *caller, const tsr_op *op, tsr_device device, const tsr_kernel_call *call,
                           tsr_launch *out)
{
    tsr_tensor view;
    bool fits;
    tsr_status status = TSR_ERROR_UNSUPPORTED;
    *out = (tsr_launch){.way = TSR_LAUNCH_COPY};
    TSR_TRY(find_view(op, call, &view, &fits));
    if (fits)
        return TSR_OK;
    if (is_product(op)) {
        out->way = TSR_LAUNCH_GEMM;
        status = tsr_product_wants(call, device, &out->bytes);
    }
    if (status == TSR_ERROR_UNSUPPORTED) {
        out->way = TSR_LAUNCH_KERNEL;
        status = ask_kernel(device, call, &out->bytes);
    }
    return status == TSR_ERROR_UNSUPPORTED ? refuse(caller, op, device) : status;
}

static tsr_status copy_view(const tsr_op *op, tsr_device device, const tsr_kernel_call *call, tsr_stream stream)
{
    tsr_tensor view;
    bool fits;
    TSR_TRY(find_view(op, call, &view, &fits));
    return tsr_launch_copy(&view, &call->outputs[0], device, stream);
}

tsr_status tsr_launch_enqueue(const tsr_op *op, tsr_launch_way way, tsr_device device, const tsr_kernel_call *call,
                              tsr_stream stream)
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    if (way == TSR_LAUNCH_COPY)
        return copy_view(op, device, call, stream);
    return way == TSR_LAUNCH_GEMM ? tsr_product_enqueue(call, device, stream)
                                  : table->launch(self, device.index, call, stream);
}

/* Allocates the workspace in the order of the default stream, so that it is freed in that order. */
tsr_status tsr_eager_launch(const tsr_op_case *c, tsr_device device, const tsr_kernel_call *call)
{
    void *self;
    tsr_launch launch;
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    tsr_kernel_call launched = *call;
    TSR_TRY(tsr_launch_find(c->caller, c->op, device, call, &launch));
    const size_t bytes = (size_t)launch.bytes;
    if (bytes > 0)
        TSR_TRY(table->alloc(self, device.index, bytes, table->default_stream, &launched.workspace));
    const tsr_status status = tsr_launch_enqueue(c->op, launch.way, device, &launched, NULL);
    if (bytes > 0)
        table->free(self, device.index, launched.workspace, bytes, table->default_stream);
    return status;
}
