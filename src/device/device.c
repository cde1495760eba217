#include "device/device.h"

#include "base/settings.h"
#include "device/driver.h"
#include "device/host/choose.h"
#include "device/host/host.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* The host's entry without a communicator, which alone has measured choices: a pinned way, or (self
 * NULL) the fixed rule. */
static tsr_device_ops resolve_host(const tsr_context *context, int index)
{
    if (!context)
        return (tsr_device_ops){tsr_host_table_for(tsr_context_kernels(NULL)), NULL, index};
    const tsr_settings *const settings = tsr_context_settings(context);
    tsr_kernel_choices *const pinned = settings->way < TSR_WAYS ? tsr_choices_pinned(settings->way) : NULL;
    return (tsr_device_ops){tsr_host_table_for(settings->kernels), pinned, index};
}

tsr_device_ops tsr_device_resolve(const tsr_context *context, tsr_device device)
{
    if (!device.driver)
        return resolve_host(context, device.index);
    return (tsr_device_ops){&device.driver->table, device.driver->self, device.index};
}

const char *tsr_device_print(tsr_device device, char *text)
{
    if (device.driver)
        snprintf(text, 64, "%.48s:%d", device.driver->table.name, device.index);
    else if (device.index != 0)
        snprintf(text, 64, "host:%d", device.index);
    else
        snprintf(text, 64, "host");
    return text;
}

tsr_status tsr_refuse_host(const char *name, tsr_device device, tsr_stream stream)
{
    if (device.index != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: device is host:%d, but there is one host, with index 0", name,
                              device.index);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: stream is %p, but the host has one stream, NULL", name, stream);
}

tsr_status tsr_device_settle(const tsr_device_ops *ops, tsr_stream stream, tsr_status status)
{
    if (!ops->table->stream_synchronize)
        return status;
    tsr_kept_sentence kept;
    tsr_status_keep(&kept);
    const tsr_status settled = ops->table->stream_synchronize(ops->self, ops->index, stream);
    return status == TSR_OK ? settled : tsr_status_restore(&kept, status);
}

tsr_status tsr_device_copy_tensor(const tsr_device_ops *ops, const tsr_tensor *from, const tsr_tensor *to,
                                  tsr_stream stream)
{
    tsr_box_copy copy = {
        .dst = to->data, .src = from->data, .element_bytes = tsr_dtype_bytes(from->dtype), .ndim = from->ndim};
    memcpy(copy.shape, from->shape, sizeof copy.shape);
    memcpy(copy.dst_strides, to->strides, sizeof copy.dst_strides);
    memcpy(copy.src_strides, from->strides, sizeof copy.src_strides);
    return ops->table->copy_boxes(ops->self, ops->index, &copy, 1, stream);
}

/* Per dtype, the bits of one part of a number: the identity of sum and of prod. */
static const struct {
    uint64_t zero, one;
    size_t part_bytes;
} identities[TSR_DTYPE_END] = {
    [TSR_F64] = {UINT64_C(0x8000000000000000), UINT64_C(0x3ff0000000000000), 8},
    [TSR_F32] = {0x80000000, 0x3f800000, 4},
    [TSR_F16] = {0x8000, 0x3c00, 2},
    [TSR_BF16] = {0x8000, 0x3f80, 2},
    [TSR_F8E4M3] = {0x80, 0x38, 1},
    [TSR_F8E5M2] = {0x80, 0x3c, 1},
    [TSR_I64] = {0, 1, 8},
    [TSR_I32] = {0, 1, 4},
    [TSR_I16] = {0, 1, 2},
    [TSR_I8] = {0, 1, 1},
    [TSR_U64] = {0, 1, 8},
    [TSR_U32] = {0, 1, 4},
    [TSR_U16] = {0, 1, 2},
    [TSR_U8] = {0, 1, 1},
    [TSR_BOOL] = {0, 1, 1},
    [TSR_C64] = {0x80000000, 0x3f800000, 4},
    [TSR_C128] = {UINT64_C(0x8000000000000000), UINT64_C(0x3ff0000000000000), 8},
};

/* Writes the low `bytes` bytes of `bits` in this machine's byte order. */
static void put_bits(unsigned char *to, uint64_t bits, size_t bytes)
{
    const uint8_t byte = (uint8_t)bits;
    const uint16_t half = (uint16_t)bits;
    const uint32_t word = (uint32_t)bits;
    const void *const from[] = {[1] = &byte, [2] = &half, [4] = &word, [8] = &bits};
    memcpy(to, from[bytes], bytes);
}

void tsr_dtype_identity(tsr_dtype dtype, tsr_reduce_op op, unsigned char *value)
{
    const size_t part = identities[dtype].part_bytes;
    const uint64_t real = op == TSR_PROD ? identities[dtype].one : identities[dtype].zero;
    put_bits(value, real, part);
    if (tsr_dtype_bytes(dtype) > part)
        put_bits(value + part, op == TSR_PROD ? 0 : real, part);
}

tsr_status tsr_device_fill_identity(const tsr_device_ops *ops, const tsr_tensor *tensor, tsr_reduce_op op,
                                    tsr_stream stream)
{
    tsr_box_fill fill = {.dst = tensor->data, .element_bytes = tsr_dtype_bytes(tensor->dtype), .ndim = tensor->ndim};
    tsr_dtype_identity(tensor->dtype, op, fill.value);
    for (int dim = 0; dim < fill.ndim; dim++) {
        if (tensor->shape[dim] == 0)
            return TSR_OK;
        fill.shape[dim] = tensor->shape[dim];
        fill.dst_strides[dim] = tensor->strides[dim];
    }
    return ops->table->fill(ops->self, ops->index, &fill, stream);
}
