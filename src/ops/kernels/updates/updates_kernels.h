/**
 * Loops of optimizers' updates over elements without gaps: one source, compiled once for each set
 * of instructions; all sets give the same bits, but for those of NaNs. Each loop reads the weight,
 * its gradient and its states once, and writes the weight and the states.
 */
#ifndef TSR_OPS_KERNELS_UPDATES_KERNELS_H
#define TSR_OPS_KERNELS_UPDATES_KERNELS_H

#include <tessera/dtype.h>

#include <stdbool.h>
#include <stdint.h>

/** The updates, as rows of the table call them. */
typedef enum tsr_update_code {
    TSR_UPDATE_SGD,
    TSR_UPDATE_MOMENTUM, /**< SGD with momentum: a state */
    TSR_UPDATE_ADAMW,    /**< two states */
    TSR_UPDATE_LION,     /**< a state */
    TSR_UPDATE_END
} tsr_update_code;

/** The weight, its gradient and the most states. */
#define TSR_UPDATE_TENSORS 4

/** What an update's formula has beside tensors; each formula reads some of it. */
typedef struct tsr_update_numbers {
    double kept; /**< by which the weight is multiplied first */
    double rate, root, beta1, beta2, epsilon, weight_decay, momentum, dampening;
    bool maximizes, nesterov;
    bool is_first; /**< momentum takes the gradient as it is */
} tsr_update_numbers;

/** Updates n elements: `in` has the weight, its gradient and the states, `out` the weight and the
 * states. A result may be one of `in`, or lie apart from all of them. */
typedef void tsr_update_loop(const void *const *in, void *const *out, int64_t n, const tsr_update_numbers *numbers);

typedef struct tsr_updates_kernels {
    /** By update and by dtype of the computation: f64 and f32. */
    tsr_update_loop *loops[TSR_UPDATE_END][TSR_DTYPE_END];
    /** By number of states: the results are what was. */
    tsr_update_loop *keep[TSR_UPDATE_TENSORS - 1][TSR_DTYPE_END];
} tsr_updates_kernels;

extern const tsr_updates_kernels tsr_updates_kernels_portable, tsr_updates_kernels_avx2, tsr_updates_kernels_avx512;

#endif
