#include "ops/eager/launch.h"

#include "ops/kernels/products/products.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

const char *tsr_launch_name(tsr_device device)
{
    void *self;
    return tsr_device_driver_table(device.driver, &self)->name;
}

const char *tsr_launch_print(tsr_device device, char *text, size_t capacity)
{
    if (device.driver)
        snprintf(text, capacity, "device %.60s:%d", tsr_launch_name(device), device.index);
    else
        snprintf(text, capacity, "the host");
    return text;
}

static tsr_status refuse(const char *caller, const tsr_op *op, tsr_device device)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: device \"%s\" has no kernel of %s for these dtypes, shapes and attributes; copy the "
                          "operands to the host, where every op runs",
                          caller, tsr_launch_name(device), op->name);
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

static bool has_strides(const tsr_tensor *a, const tsr_tensor *b)
{
    return memcmp(a->strides, b->strides, (size_t)a->ndim * sizeof *a->strides) == 0;
}

/* The copy by which a device computes a call. */
typedef struct copied {
    tsr_tensor from, to;
    bool fits; /* false: no copy does it */
} copied;

/* Asks for the result of a call as strides over `input`, in place of the first input. */
static tsr_status ask_view(const tsr_op *op, const tsr_kernel_call *call, const tsr_tensor *input, tsr_tensor *out,
                           bool *fits)
{
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS];
    tsr_kernel_call asked = *call;
    memcpy(inputs, call->inputs, (size_t)call->input_count * sizeof *inputs);
    inputs[0] = *input;
    asked.inputs = inputs;
    *out = *input;
    out->ndim = call->outputs[0].ndim;
    memcpy(out->shape, call->outputs[0].shape, sizeof out->shape);
    *fits = true;
    return op->view(&asked, out, fits);
}

/* Finds the result as strides over the first input; or the first input as strides over the result,
 * where the op keeps elements in order, as a reshape does. A copy must not read what it has
 * written. */
static tsr_status find_copy(const tsr_op *op, const tsr_kernel_call *call, copied *out)
{
    const tsr_tensor *const input = &call->inputs[0], *const result = &call->outputs[0];
    tsr_tensor view;
    *out = (copied){*input, *result, op->passes};
    if (!out->fits && op->view)
        TSR_TRY(ask_view(op, call, input, &out->from, &out->fits));
    if (!out->fits && op->view) {
        out->from = *input;
        out->to = tsr_tensor_contiguous(result->data, input->dtype, input->ndim, input->shape);
        TSR_TRY(ask_view(op, call, &out->to, &view, &out->fits));
        out->fits = out->fits && view.data == result->data && has_strides(&view, result);
    }
    out->fits = out->fits && (out->from.data != out->to.data || has_strides(&out->from, &out->to));
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
    copied copy;
    tsr_status status = TSR_ERROR_UNSUPPORTED;
    *out = (tsr_launch){.way = TSR_LAUNCH_COPY};
    TSR_TRY(find_copy(op, call, &copy));
    if (copy.fits)
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

static tsr_status enqueue_copy(const tsr_op *op, tsr_device device, const tsr_kernel_call *call, tsr_stream stream)
{
    copied copy;
    TSR_TRY(find_copy(op, call, &copy));
    return tsr_launch_copy(&copy.from, &copy.to, device, stream);
}

tsr_status tsr_launch_enqueue(const tsr_op *op, tsr_launch_way way, tsr_device device, const tsr_kernel_call *call,
                              tsr_stream stream)
{
    void *self;
    const tsr_device_table *const table = tsr_device_driver_table(device.driver, &self);
    if (way == TSR_LAUNCH_COPY)
        return enqueue_copy(op, device, call, stream);
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
