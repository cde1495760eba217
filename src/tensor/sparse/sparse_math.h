/** The formulas of sparse optimizers for the elements of one row, in f32 or f64. */
#ifndef TSR_TENSOR_SPARSE_SPARSE_MATH_H
#define TSR_TENSOR_SPARSE_SPARSE_MATH_H

#include "tensor/kernel_sets.h"

#include <stdint.h>

/** The numbers of a step; formulas round each to their dtype first. */
typedef struct tsr_sparse_numbers {
    double rate; /**< what a quotient is multiplied by */
    double momentum, beta1, beta2;
    double in_root, beside_root;     /**< what is added to what a root is taken of, and to the root */
    double correction1, correction2; /**< 1 - beta^t; for formulas that divide by them */
} tsr_sparse_numbers;

/** Changes `count` elements of a row at `w` by the gradient `g`. `a` and `b` are the row's states,
 * as sparse_state.h orders them, or NULL. Nothing overlaps; elements may begin at any byte. */
typedef void tsr_sparse_change(void *w, const void *g, void *a, void *b, int64_t count,
                               const tsr_sparse_numbers *numbers);

/** The formulas for one dtype. */
typedef struct tsr_sparse_math {
    tsr_sparse_change *sgd, *momentum, *adagrad;
    tsr_sparse_change *rowwise;     /**< `a` is the one state of the row, which has its new value */
    tsr_sparse_change *adam;        /**< torch.optim.SparseAdam: `rate` holds both corrections */
    tsr_sparse_change *adam_by_row; /**< DGL's SparseAdam: divides by the corrections */

    /** out = g + decay * w */
    void (*decay)(void *out, const void *g, const void *w, double decay, int64_t count);

    /** Adds the mean of the squares of g to the number at `state`. `count` may be 0. The order of
     * the sum depends on `count` alone. */
    void (*add_mean_square)(void *state, const void *g, int64_t count);
} tsr_sparse_math;

/** For f32 and for f64, compiled for each set of instructions that the build has kernels for. All
 * of them give equal bits. */
extern const tsr_sparse_math tsr_sparse_math_portable[2];
#if TSR_HAVE_X86_KERNELS
extern const tsr_sparse_math tsr_sparse_math_avx2[2], tsr_sparse_math_avx512[2];
#endif

/** The formulas for f32, or (`wide`) for f64, with kernels "portable", "avx2" or "avx512"; the
 * portable ones if the build lacks them. */
static inline const tsr_sparse_math *tsr_sparse_math_of(const char *kernels, int wide)
{
    static const tsr_sparse_math(*const sets[])[2] = TSR_KERNEL_SETS(tsr_sparse_math);
    return &(*sets[tsr_kernel_set(kernels)])[wide];
}

#endif
