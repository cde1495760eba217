/** What a reduction does to contiguous blocks, per dtype: one row of a table each. */
#ifndef TSR_DEVICE_HOST_ARITHMETIC_H
#define TSR_DEVICE_HOST_ARITHMETIC_H

#include "device/host/kernels.h"

/** dst[i] = a[i] op b[i] over `count` accumulators; `dst` may be `a`, and overlaps nothing else. NaNs come out canonical. */
typedef void tsr_combine(void *dst, const void *a, const void *b, int64_t count);

/**
 * The same where it leaves the caches: `bytes` bytes of accumulators, whole lines of STREAM_LINE, go to each of `count` destinations by
 * stores that bypass them, from byte `begin` of each on, where lines begin. No destination overlaps anything else.
 */
typedef void tsr_combine_streamed(char *const *dst, int count, size_t begin, const void *a, const void *b, size_t bytes);

/** dst[i] = src[i] with its NaNs canonical; likewise. */
typedef void tsr_settle(void *dst, const void *src, int64_t count);

/** values[i] /= divisor, in the accumulator's type. */
typedef void tsr_divide(void *values, int64_t divisor, int64_t count);

/** One operation of a dtype, both NULL where there is none. */
typedef struct tsr_combination {
    tsr_combine *into;
    tsr_combine_streamed *streamed; /**< NULL: `into` a buffer, and on from there */
} tsr_combination;

typedef struct tsr_arithmetic {
    size_t bytes;                               /**< of an accumulator of one element; f32 for the narrow floating types */
    int parts;                                  /**< accumulators of an element: 2 for a complex number, else 1 */
    tsr_settle *settle;                         /**< for a single source; NULL where bits need no care */
    tsr_divide *divide;                         /**< NULL where no op divides */
    tsr_combination combine[TSR_REDUCE_OP_END]; /**< TSR_AVG's adds */
} tsr_arithmetic;

/** The row of a dtype that exists. Static. */
const tsr_arithmetic *KERNEL(arithmetic)(tsr_dtype dtype);

#endif
