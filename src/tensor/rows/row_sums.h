/** Sums of rows, element by element, as reductions give them. */
#ifndef TSR_TENSOR_ROWS_ROW_SUMS_H
#define TSR_TENSOR_ROWS_ROW_SUMS_H

#include <tessera/dtype.h>

#include <stdint.h>

/** to[i] += from[i] for `count` numbers, which do not overlap. */
typedef void tsr_row_add(void *to, const void *from, int64_t count);

/** How rows of a dtype are summed. */
typedef struct tsr_row_arithmetic {
    tsr_dtype accumulator; /**< f32 for narrow floats, else the dtype itself */
    int numbers;           /**< in an element of the accumulator: 2 for complex dtypes */
    tsr_row_add *add;      /**< for accumulators; NULL: the dtype has no sum */
    void (*divide)(void *values, int64_t divisor, int64_t count); /**< NULL: the dtype has no mean */
} tsr_row_arithmetic;

/** The row of a dtype. Static. */
const tsr_row_arithmetic *tsr_row_arithmetic_of(tsr_dtype dtype);

#endif
