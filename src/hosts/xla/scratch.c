#include "scratch.h"

#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

#include <string.h>

/* What Tessera's workspaces are aligned to. */
enum { ALIGNMENT = 64 };

static bool has_gaps(const tsr_tensor *tensor)
{
    return !tsr_tensor_is_contiguous(tensor);
}

static size_t bytes_of(const tsr_tensor *tensor)
{
    int64_t count = 0;
    return tsr_tensor_count(tensor, &count) == TSR_OK ? (size_t)count * tsr_dtype_bytes(tensor->dtype) : 0;
}

/* The place of the next piece of memory behind `at`. */
static size_t after(size_t at, size_t bytes)
{
    return (at + bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Bytes of the workspace and of all copies. */
static size_t count_bytes(const tsr_xla_work *work)
{
    size_t bytes = after(0, work->bytes);
    for (int64_t at = 0; at < work->operands + work->results; at++)
        if (has_gaps(&work->parts[at].tensor))
            bytes = after(bytes, bytes_of(&work->parts[at].tensor));
    return bytes;
}

static tsr_status copy_box(const tsr_xla_work *work, const tsr_tensor *dst, const tsr_tensor *src)
{
    void *self;
    const tsr_device *const device = &work->lane.device;
    const tsr_device_table *const table = tsr_device_driver_table(device->driver, &self);
    tsr_box_copy box = {
        .dst = dst->data, .src = src->data, .element_bytes = tsr_dtype_bytes(src->dtype), .ndim = src->ndim};
    memcpy(box.shape, src->shape, sizeof box.shape);
    memcpy(box.dst_strides, dst->strides, sizeof box.dst_strides);
    memcpy(box.src_strides, src->strides, sizeof box.src_strides);
    return bytes_of(src) ? table->copy_boxes(self, device->index, &box, 1, work->lane.stream) : TSR_OK;
}

/* The part in XLA's buffer. */
static tsr_tensor part_of(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame, int64_t at)
{
    tsr_tensor part = work->parts[at].tensor;
    part.data = tsr_xla_work_buffer(work, frame, at)->data;
    return part;
}

/* Points the tensors of parts that have gaps to dense copies, which lie behind the workspace. */
static tsr_status make_dense(tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    size_t offset = after(0, work->bytes);
    for (int64_t at = 0; at < work->operands + work->results; at++) {
        const tsr_tensor part = part_of(work, frame, at);
        if (!has_gaps(&part))
            continue;
        tsr_tensor *const tensor = &work->tensors[at];
        *tensor = tsr_tensor_contiguous((char *)work->workspace + offset, part.dtype, part.ndim, part.shape);
        tensor->device = part.device;
        offset = after(offset, bytes_of(&part));
        if (at < work->operands)
            TSR_TRY(copy_box(work, tensor, &part));
    }
    return TSR_OK;
}

tsr_status tsr_xla_scratch_take(tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    XLA_FFI_DeviceMemory_Allocate_Args args = {.struct_size = XLA_FFI_DeviceMemory_Allocate_Args_STRUCT_SIZE,
                                               .ctx = frame->ctx,
                                               .size = count_bytes(work),
                                               .alignment = ALIGNMENT};
    work->workspace = NULL;
    if (args.size == 0)
        return TSR_OK;
    TSR_TRY(tsr_xla_pass_on(frame->api, "XLA has no memory on the GPU for the call's workspace",
                            frame->api->XLA_FFI_DeviceMemory_Allocate(&args)));
    work->workspace = args.data;
    return make_dense(work, frame);
}

static tsr_status fill_results(const tsr_xla_work *work, const XLA_FFI_CallFrame *frame)
{
    for (int64_t at = work->operands; at < work->operands + work->results; at++) {
        const tsr_tensor part = part_of(work, frame, at);
        if (has_gaps(&part))
            TSR_TRY(copy_box(work, &part, &work->tensors[at]));
    }
    return TSR_OK;
}

tsr_status tsr_xla_scratch_return(tsr_xla_work *work, const XLA_FFI_CallFrame *frame, tsr_status status)
{
    if (status == TSR_OK)
        status = fill_results(work, frame);
    if (!work->workspace)
        return status;
    XLA_FFI_DeviceMemory_Free_Args args = {.struct_size = XLA_FFI_DeviceMemory_Free_Args_STRUCT_SIZE,
                                           .ctx = frame->ctx,
                                           .size = count_bytes(work),
                                           .data = work->workspace};
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    const tsr_status freed = tsr_xla_pass_on(frame->api, "XLA does not take the workspace back",
                                             frame->api->XLA_FFI_DeviceMemory_Free(&args));
    work->workspace = NULL;
    if (status == TSR_OK)
        return freed;
    tsr_status_restore(&kept, status);
    return status;
}
