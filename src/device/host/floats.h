/** The narrow floating types, many elements at a time. */
#ifndef TSR_DEVICE_HOST_FLOATS_H
#define TSR_DEVICE_HOST_FLOATS_H

#include "device/host/kernels.h"

/** `count` values of a narrow floating type to f32 (exact, NaN payloads unspecified), and back: rounded once to nearest even, NaN
 * canonical. Buffers do not overlap. */
typedef void tsr_widen(float *dst, const void *src, int64_t count);
typedef void tsr_narrow(void *dst, const float *src, int64_t count);

/** NULL for dtypes that are not narrow floats. */
tsr_widen *KERNEL(widen)(tsr_dtype dtype);
tsr_narrow *KERNEL(narrow)(tsr_dtype dtype);

/** dst = a + b for a narrow floating type, in f32, rounded once: the most common reduction in one pass. NULL likewise. */
typedef void tsr_add_pair(void *dst, const void *a, const void *b, int64_t count);
tsr_add_pair *KERNEL(add_pair)(tsr_dtype dtype);

#endif
