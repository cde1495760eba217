/** The arithmetic of reductions on contiguous blocks: one table row per dtype. */
#ifndef TSR_DEVICE_HOST_ARITHMETIC_H
#define TSR_DEVICE_HOST_ARITHMETIC_H

#include "device/host/kernels.h"

/** dst[i] = a[i] op b[i] for `count` accumulators; `dst` may be `a`, and overlaps nothing else.
 * NaNs come out canonical. */
typedef void tsr_combine(void *dst, const void *a, const void *b, int64_t count);

/**
 * tsr_combine() with stores that bypass the cache: `bytes` bytes of results, a multiple of
 * STREAM_LINE, go to each of `count` destinations from its byte `begin` on, which lies at a
 * multiple of STREAM_LINE. A destination may be where `a` or `b` is read, for each line is read
 * before it is written; it overlaps nothing else.
 */
typedef void tsr_combine_streamed(char *const *dst, int count, size_t begin, const void *a, const void *b,
                                  size_t bytes);

/** dst[i] = src[i], a NaN canonical, for `count` accumulators; `dst` may be `src`. */
typedef void tsr_settle(void *dst, const void *src, int64_t count);

/** values[i] /= divisor for `count` accumulators, in their type. */
typedef void tsr_divide(void *values, int64_t divisor, int64_t count);

/** One op of a dtype; both functions are NULL if the dtype does not have it. */
typedef struct tsr_combination {
    tsr_combine *into;
    tsr_combine_streamed *streamed; /**< NULL: combine `into` a buffer, then copy */
} tsr_combination;

typedef struct tsr_arithmetic {
    size_t bytes;       /**< bytes of an element while it is accumulated; narrow floats accumulate in f32 */
    int parts;          /**< accumulators per element: 2 for a complex number, else 1 */
    tsr_settle *settle; /**< for a single source; NULL: its bits are kept */
    tsr_divide *divide; /**< NULL: no op of the dtype divides */
    tsr_combination combine[TSR_REDUCE_OP_END]; /**< by op; that of TSR_AVG adds */
} tsr_arithmetic;

/** The row of a valid dtype. Static memory. */
const tsr_arithmetic *KERNEL(arithmetic)(tsr_dtype dtype);

#endif
