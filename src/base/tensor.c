#include "base/checked.h"

#include <tessera/sys/status.h>
#include <tessera/tensor.h>

tsr_device tsr_device_host(void)
{
    return (tsr_device){NULL, 0};
}

tsr_tensor tsr_tensor_contiguous(void *data, tsr_dtype dtype, int ndim, const int64_t *shape)
{
    tsr_tensor tensor = {.data = data, .dtype = dtype, .device = tsr_device_host(), .ndim = ndim};
    /* Unsigned, because the product of an unchecked shape may wrap. */
    uint64_t stride = 1;
    for (int d = (ndim < TSR_MAX_DIMS ? ndim : TSR_MAX_DIMS) - 1; d >= 0; d--) {
        tensor.shape[d] = shape[d];
        tensor.strides[d] = (int64_t)stride;
        stride *= (uint64_t)shape[d];
    }
    return tensor;
}

static tsr_status check_shape(const tsr_tensor *tensor, bool *empty)
{
    if (tensor->ndim < 0 || tensor->ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_tensor_count: ndim is %d, not 0 to %d", tensor->ndim,
                              TSR_MAX_DIMS);
    for (int d = 0; d < tensor->ndim; d++) {
        if (tensor->shape[d] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_tensor_count: shape[%d] is %lld, which is negative", d,
                                  (long long)tensor->shape[d]);
        *empty = *empty || tensor->shape[d] == 0;
    }
    return TSR_OK;
}

tsr_status tsr_tensor_count(const tsr_tensor *tensor, int64_t *count)
{
    if (!tensor || !count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_tensor_count: %s is NULL", tensor ? "count" : "tensor");
    bool empty = false;
    TSR_TRY(check_shape(tensor, &empty));
    const int64_t element = (int64_t)tsr_dtype_bytes(tensor->dtype);
    if (element == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_tensor_count: dtype is %d, which is not a dtype",
                              (int)tensor->dtype);
    int64_t bytes = element;
    for (int d = 0; d < tensor->ndim && !empty; d++)
        if (!tsr_multiply(bytes, tensor->shape[d], &bytes))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_tensor_count: up to shape[%d] = %lld there are more than 2^63-1 bytes of %s", d,
                                  (long long)tensor->shape[d], tsr_dtype_name(tensor->dtype));
    *count = empty ? 0 : bytes / element;
    return TSR_OK;
}

int tsr_tensor_is_contiguous(const tsr_tensor *tensor)
{
    int64_t stride = 1;
    int rows_fit = 1;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        if (tensor->shape[d] == 0)
            return 1;
        rows_fit = rows_fit && (tensor->shape[d] == 1 || tensor->strides[d] == stride);
        /* After an overflow no stride can fit any more. */
        if (!tsr_multiply(stride, tensor->shape[d], &stride))
            stride = -1;
    }
    return rows_fit;
}
