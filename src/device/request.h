/** Checks of a call that are the same on all devices: they refuse shapes, dtypes and ops that no
 * device takes. Pure. */
#ifndef TSR_DEVICE_REQUEST_H
#define TSR_DEVICE_REQUEST_H

#include <tessera/sys/device.h>

/** TSR_ERROR_ARGUMENT: ndim, a size or element_bytes is out of range. `device` is "host" or "cuda",
 * `what` is "copy" or "fill". */
tsr_status tsr_request_check_box(const char *device, const char *what, int ndim, const int64_t *shape,
                                 size_t element_bytes);

/** TSR_ERROR_ARGUMENT: ndim, a size, a count or the divisor is out of range. TSR_ERROR_UNSUPPORTED:
 * the dtype has no such op. */
tsr_status tsr_request_check_reduction(const char *device, const tsr_box_reduce *given);

/** TSR_ERROR_ARGUMENT: a negative count. TSR_ERROR_UNSUPPORTED: a dtype is not a floating type. */
tsr_status tsr_request_check_conversion(const char *device, tsr_dtype dst, tsr_dtype src, int64_t count);

#endif
