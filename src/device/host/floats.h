/** Blocks of the narrow floating types. */
#ifndef TSR_DEVICE_HOST_FLOATS_H
#define TSR_DEVICE_HOST_FLOATS_H

#include "device/host/kernels.h"

/** Converts `count` values of a narrow floating type to f32: exact, NaN payloads unspecified.
 * Buffers do not overlap. */
typedef void tsr_widen(float *dst, const void *src, int64_t count);

/** Converts `count` f32 to a narrow floating type: rounded once to nearest even, NaNs canonical.
 * Buffers do not overlap. */
typedef void tsr_narrow(void *dst, const float *src, int64_t count);

/** The conversions of a dtype; NULL if it is not a narrow floating type. */
tsr_widen *KERNEL(widen)(tsr_dtype dtype);
tsr_narrow *KERNEL(narrow)(tsr_dtype dtype);

/** dst = a + b for a narrow floating type, added in f32 and rounded once: the most common
 * reduction, in one pass. */
typedef void tsr_add_pair(void *dst, const void *a, const void *b, int64_t count);

/** The tsr_add_pair of a dtype; NULL if it is not a narrow floating type. */
tsr_add_pair *KERNEL(add_pair)(tsr_dtype dtype);

#endif
