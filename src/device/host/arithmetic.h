/** What a reduction does to contiguous blocks, per dtype: one row of a table each. */
#ifndef TSR_DEVICE_HOST_ARITHMETIC_H
#define TSR_DEVICE_HOST_ARITHMETIC_H

#include "device/host/kernels.h"

/** dst[i] = a[i] op b[i] over `count` accumulators; `dst` may be `a`, and overlaps nothing else. NaNs come out canonical. */
typedef void tsr_combine(void *dst, const void *a, const void *b, int64_t count);

/** dst[i] = src[i] with its NaNs canonical; likewise. */
typedef void tsr_settle(void *dst, const void *src, int64_t count);

/** values[i] /= divisor, in the accumulator's type. */
typedef void tsr_divide(void *values, int64_t divisor, int64_t count);

typedef struct tsr_arithmetic {
    size_t bytes;                            /**< of an accumulator of one element; f32 for the narrow floating types */
    int parts;                               /**< accumulators of an element: 2 for a complex number, else 1 */
    tsr_settle *settle;                      /**< for a single source; NULL where bits need no care */
    tsr_divide *divide;                      /**< NULL where no op divides */
    tsr_combine *combine[TSR_REDUCE_OP_END]; /**< NULL where the dtype has no such op; TSR_AVG's adds */
} tsr_arithmetic;

/** The row of a dtype that exists. Static. */
const tsr_arithmetic *KERNEL(arithmetic)(tsr_dtype dtype);

#endif
