/**
 * @file
 * Losses of dtensors: the cross-entropy of logits, and that of a last linear layer whose logits are
 * never whole. PyTorch's torch.nn.functional.cross_entropy, with its defaults. What all operations
 * have in common (layouts, dtypes, the three forms of a function) is in tessera/ops.h.
 *
 * @par Layouts
 * Logits may be cut along their classes, the vocabulary, in any way, as a column-parallel layer
 * makes them: then ranks meet inside, along the mesh dims that cut classes. They exchange the
 * largest logit and the sum of exponentials of each row, once. The logit of a target stays with its
 * owner. Rows are cut as those of targets.
 *
 * A loss of each row (TSR_LOSS_NONE) is cut as rows are, and whole along classes. A reduced
 * loss is Partial(sum) along all mesh dims that cut classes or rows; tsr_redistribute() reduces it.
 * A mean over rows of which some may be ignored divides by a number that only the targets tell. So
 * ranks exchange sums and numbers of rows, along all mesh dims that cut either, and the loss is
 * whole: the same bits on every rank. With `ignore_index` TSR_IGNORE_NONE the number is known, and
 * the mean is Partial as a sum is.
 *
 * @par Errors
 * A target that is no class is TSR_ERROR_ARGUMENT; the sentence names the target, the rank and the
 * index. Ranks that meet this one get TSR_ERROR_PEER.
 */
#ifndef TESSERA_LOSSES_H
#define TESSERA_LOSSES_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How losses of rows become one. */
typedef enum tsr_loss_reduction {
    TSR_LOSS_MEAN = 0, /**< their sum divided by the number of rows that are not ignored; NaN
                                 without any */
    TSR_LOSS_SUM,
    TSR_LOSS_NONE /**< they do not: an ignored row has loss 0 */
} tsr_loss_reduction;

/** An `ignore_index` by which no row is ignored. */
#define TSR_IGNORE_NONE INT64_MIN

/** What a loss is. */
typedef struct tsr_cross_entropy_options {
    size_t size; /**< sizeof(tsr_cross_entropy_options) */
    tsr_loss_reduction reduction;
    int64_t ignore_index;   /**< rows with this target are ignored; -100 unless set */
    double label_smoothing; /**< the part, from 0 to 1, of a target that all classes share */
} tsr_cross_entropy_options;

/** The mean, over rows whose target is not -100. */
#define TSR_CROSS_ENTROPY_OPTIONS_INIT                                                             \
    {                                                                                              \
        sizeof(tsr_cross_entropy_options), TSR_LOSS_MEAN, -100, 0                                  \
    }

/** @{ */
/**
 * Floats: the negative logarithm of the target's softmax, or with label smoothing e of (1 - e)
 * times that and e times the mean over all classes. `logits` are (.., classes), `targets` (..), i64
 * or i32. `options` NULL: the mean. The result has the logits' dtype; it is computed in f32, of f64
 * in f64, with sums over blocks in f64: its error is some 1e-6 for f32.
 */
TSR_API tsr_status tsr_cross_entropy(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                     const tsr_cross_entropy_options *options, tsr_dtensor **out);
TSR_API tsr_status tsr_cross_entropy_into(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                          const tsr_cross_entropy_options *options,
                                          tsr_dtensor *out);
TSR_API tsr_status tsr_cross_entropy_backward(const tsr_dtensor *logits, const tsr_dtensor *targets,
                                              const tsr_cross_entropy_options *options,
                                              const tsr_dtensor *dout, tsr_dtensor **dlogits);
/** @} */

/** @{ */
/**
 * tsr_cross_entropy() of the logits x w', `x` (.., features), `w` (classes, features), without the
 * logits: they are made for some rows at a time, in 32 MiB of memory, and in the backward again.
 * `w` may be cut along classes, and rows of x and targets alike; features must be whole. dx is
 * Partial(sum) along mesh dims that cut classes, and dw along those that cut rows. Products are
 * those of tsr_linear(). Logits of f16 and bf16 stay in f32, and so do sums of dw.
 */
TSR_API tsr_status tsr_linear_cross_entropy(const tsr_dtensor *x, const tsr_dtensor *w,
                                            const tsr_dtensor *targets,
                                            const tsr_cross_entropy_options *options,
                                            tsr_dtensor **out);
TSR_API tsr_status tsr_linear_cross_entropy_into(const tsr_dtensor *x, const tsr_dtensor *w,
                                                 const tsr_dtensor *targets,
                                                 const tsr_cross_entropy_options *options,
                                                 tsr_dtensor *out);
TSR_API tsr_status tsr_linear_cross_entropy_backward(const tsr_dtensor *x, const tsr_dtensor *w,
                                                     const tsr_dtensor *targets,
                                                     const tsr_cross_entropy_options *options,
                                                     const tsr_dtensor *dout, tsr_dtensor **dx,
                                                     tsr_dtensor **dw);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
