#include "device/request.h"

#include "device/host/box.h"

#include <tessera/sys/status.h>

#include <stdint.h>

static tsr_status check_shape(const char *device, const char *what, int ndim, const int64_t *shape)
{
    if (ndim < 0 || ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s device: a %s has %d dims; 0 to %d are possible", device, what,
                              ndim, TSR_MAX_DIMS);
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s device: dim %d of a %s has size %lld; sizes are at least 0",
                                  device, d, what, (long long)shape[d]);
    return TSR_OK;
}

tsr_status tsr_request_check_box(const char *device, const char *what, int ndim, const int64_t *shape,
                                 size_t element_bytes)
{
    if (element_bytes == 0 || !tsr_box_run_is_element(element_bytes))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s device: element_bytes of a %s is %zu; elements have 1, 2, 4, 8 or 16 bytes", device,
                              what, element_bytes);
    return check_shape(device, what, ndim, shape);
}

static tsr_status check_op(const char *device, const tsr_box_reduce *given)
{
    const tsr_dtype_info *const info = tsr_dtype_get(given->dtype);
    if (!info || (unsigned)given->op >= TSR_REDUCE_OP_END || !(info->reduce_ops >> given->op & 1))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s device: %s of %s is not defined", device,
                              tsr_reduce_op_name(given->op), tsr_dtype_name(given->dtype));
    const bool adds = given->op == TSR_SUM || given->op == TSR_AVG;
    const bool divides = adds && (info->kind == TSR_CLASS_FLOAT || info->kind == TSR_CLASS_COMPLEX);
    if (given->divisor < 1 || (given->divisor > 1 && !divides))
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s device: divisor %lld for %s of %s; it is 1, or more where floating or complex values are added", device,
            (long long)given->divisor, tsr_reduce_op_name(given->op), info->name);
    return TSR_OK;
}

tsr_status tsr_request_check_reduction(const char *device, const tsr_box_reduce *given)
{
    TSR_TRY(check_shape(device, "reduction", given->ndim, given->shape));
    if (given->src_count < 1 || given->dst_count < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s device: a reduction from %d sources to %d destinations; both are at least 1", device,
                              given->src_count, given->dst_count);
    return check_op(device, given);
}

static bool is_float(tsr_dtype dtype)
{
    const tsr_dtype_info *const info = tsr_dtype_get(dtype);
    return info && info->kind == TSR_CLASS_FLOAT;
}

tsr_status tsr_request_check_conversion(const char *device, tsr_dtype dst, tsr_dtype src, int64_t count)
{
    if (count < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s device: cannot convert %lld elements; counts are at least 0",
                              device, (long long)count);
    if (!is_float(dst) || !is_float(src))
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s device: no conversion from %s to %s; f64, f32, f16, bf16, f8e4m3 and f8e5m2 convert to each other",
            device, tsr_dtype_name(src), tsr_dtype_name(dst));
    return TSR_OK;
}
