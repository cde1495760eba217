/** Sums of rows, element by element, as reductions give them. */
#ifndef TSR_TENSOR_ROWS_ROW_SUMS_H
#define TSR_TENSOR_ROWS_ROW_SUMS_H

#include "tensor/kernel_sets.h"

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

/** A row for each dtype, compiled for each set of instructions that the build has kernels for. */
extern const tsr_row_arithmetic tsr_row_arithmetic_portable[TSR_DTYPE_END];
#if TSR_HAVE_X86_KERNELS
extern const tsr_row_arithmetic tsr_row_arithmetic_avx2[TSR_DTYPE_END], tsr_row_arithmetic_avx512[TSR_DTYPE_END];
#endif

/** The row of a dtype with kernels "portable", "avx2" or "avx512"; with the portable ones if the
 * build lacks them. */
static inline const tsr_row_arithmetic *tsr_row_arithmetic_of(const char *kernels, tsr_dtype dtype)
{
    static const tsr_row_arithmetic(*const sets[])[TSR_DTYPE_END] = TSR_KERNEL_SETS(tsr_row_arithmetic);
    return &(*sets[tsr_kernel_set(kernels)])[dtype];
}

#endif
