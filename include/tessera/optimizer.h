/**
 * @file
 * Optimizers in programs (program.h): they record, beside a loss and its tsr_gradients(), how a run
 * changes the weights. PyTorch's torch.optim, GradScaler and clip_grad_norm_(); the formulas are
 * theirs, rounded in their order. docs/training.md has a program that trains.
 *
 * @par Order
 * Each call is optional but the last, and all take gradients as tsr_gradients() gives them:
 *
 *     tsr_gradients(p, loss, count, weights, gradients);
 *     tsr_optimizer_reduce(p, count, weights, gradients, &options);         sums over ranks
 *     tsr_optimizer_unscale(p, count, gradients, scale, &finite);           of a scaled loss
 *     tsr_optimizer_clip(p, count, gradients, 1.0, &norm);                  by the global norm
 *     tsr_optimizer_update(p, count, weights, gradients, rate, step, finite, &options);
 *
 * Parameters of other options, such as those without weight decay, are another call of
 * tsr_optimizer_reduce() and tsr_optimizer_update(); unscale and clip take all gradients at once.
 *
 * @par Parameters and states
 * A trained parameter is a tsr_state(), of f64, f32, bf16 or f16. An update makes states that are
 * named as PyTorch names them, behind the parameter's name: "w.exp_avg". Bind zeros to them before
 * the first run. Arithmetic and states have the parameter's dtype, but f32 where that is bf16 or
 * f16: each run then rounds the new weight once.
 *
 * @par Layouts
 * States lie as their parameters do, unless options say otherwise: then a gradient is brought to
 * the states' layout (from Partial: a reduce-scatter), the update is done there, and the new weight
 * is brought back (an all-gather). That is ZeRO-1. Under any layouts an update gives the bits of
 * one rank, but where a sum over ranks is in it: of gradients, of norms, and of Adafactor.
 *
 * A parameter that is to be cut by elements, and not by whole rows, is one of one dim, cut as any
 * is, which the program reshapes where it uses it. SGD, AdamW and Lion do not care. `views` of the
 * options tell Adafactor and Muon which tensor it holds: Adafactor brings its gradient and the
 * weight to the nearest cut of whole rows, and has the tensor's states there; Muon's state is as
 * the parameter.
 *
 * @par Errors
 * They stick to the program, as those of ops do. Nothing communicates while recording.
 */
#ifndef TESSERA_OPTIMIZER_H
#define TESSERA_OPTIMIZER_H

#include <tessera/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How an update follows from gradients. */
typedef enum tsr_optimizer_kind {
    TSR_SGD = 0,   /**< torch.optim.SGD; with momentum a state "momentum_buffer" */
    TSR_ADAMW,     /**< torch.optim.AdamW; states "exp_avg" and "exp_avg_sq" */
    TSR_LION,      /**< Lion (arXiv 2302.06675); a state "exp_avg" */
    TSR_ADAFACTOR, /**< torch.optim.Adafactor; states "row_var" and "col_var", or "variance" of
                        parameters of less than two dims */
    TSR_MUON       /**< torch.optim.Muon, of matrices; a state "momentum_buffer" */
} tsr_optimizer_kind;

/** By what Muon multiplies the learning rate of a matrix of a rows and b columns. */
typedef enum tsr_muon_rate {
    TSR_MUON_ORIGINAL = 0,   /**< sqrt(max(1, a / b)) */
    TSR_MUON_MATCH_RMS_ADAMW /**< 0.2 sqrt(max(a, b)) */
} tsr_muon_rate;

/** The dims of the tensor whose elements a parameter of one dim holds, in row-major order. */
typedef struct tsr_optimizer_view {
    int ndim; /**< 0: the parameter is no such view */
    int64_t shape[TSR_MAX_DIMS];
} tsr_optimizer_view;

/** What an optimizer does. Begin with TSR_SGD_INIT, TSR_ADAMW_INIT, .., which have PyTorch's
 * defaults, and set what differs. */
typedef struct tsr_optimizer_options {
    size_t size; /**< sizeof(tsr_optimizer_options) */
    tsr_optimizer_kind kind;
    double weight_decay;    /**< SGD: times the weight, is added to the gradient; others: times the
                                 learning rate, the part of the weight that goes in each step */
    double momentum;        /**< SGD, Muon */
    double dampening;       /**< SGD */
    int nesterov;           /**< SGD, Muon: 1 or 0 */
    double beta1, beta2;    /**< AdamW, Lion: from 0 to below 1 */
    double epsilon;         /**< AdamW: added to the denominator; Muon: the least norm by which it
                                 divides; Adafactor: eps[0], 0: the dtype's machine epsilon */
    double beta2_decay;     /**< Adafactor, at most 0 */
    double least_scale;     /**< Adafactor: eps[1] */
    double threshold;       /**< Adafactor: d, at least 1 */
    double coefficients[3]; /**< Muon: of the Newton-Schulz iteration */
    int iterations;         /**< Muon: how many of them, 1 to 99 */
    tsr_muon_rate rate;     /**< Muon */
    int masters;            /**< 1: weights of bf16 or f16 are roundings of states "w.master" of
                                 f32, which lie as other states do; bind the weights, cast, to
                                 them */
    unsigned shard_over;    /**< mesh dims, by bits, on which states are cut where their parameters
                                 are Replicate (ZeRO-1): along the longest tensor dim that is not
                                 cut yet, in balanced parts */
    const char *const *placements; /**< of the states of each parameter, as text; a NULL in it, or
                                        in its place: as `shard_over` says. Borrowed for the call */
    int maximize; /**< 1: the update ascends, as with gradients of the other sign */
    const tsr_optimizer_view *views; /**< for each parameter, so that Adafactor and Muon see the
                                          tensor in one that is cut by elements; NULL: parameters
                                          are what they are. Borrowed for the call */
} tsr_optimizer_options;

/** @{ */
/** PyTorch's defaults; of Lion those of its paper. */
#define TSR_SGD_INIT                                                                               \
    {                                                                                              \
        sizeof(tsr_optimizer_options), TSR_SGD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, {0, 0, 0}, 5,        \
            TSR_MUON_ORIGINAL, 0, 0, TSR_NULL, 0, TSR_NULL                                         \
    }
#define TSR_ADAMW_INIT                                                                             \
    {                                                                                              \
        sizeof(tsr_optimizer_options), TSR_ADAMW, 1e-2, 0, 0, 0, 0.9, 0.999, 1e-8, 0, 0, 1,        \
            {0, 0, 0}, 5, TSR_MUON_ORIGINAL, 0, 0, TSR_NULL, 0, TSR_NULL                           \
    }
#define TSR_LION_INIT                                                                              \
    {                                                                                              \
        sizeof(tsr_optimizer_options), TSR_LION, 0, 0, 0, 0, 0.9, 0.99, 0, 0, 0, 1, {0, 0, 0}, 5,  \
            TSR_MUON_ORIGINAL, 0, 0, TSR_NULL, 0, TSR_NULL                                         \
    }
#define TSR_ADAFACTOR_INIT                                                                         \
    {                                                                                              \
        sizeof(tsr_optimizer_options), TSR_ADAFACTOR, 0, 0, 0, 0, 0, 0, 0, -0.8, 1e-3, 1,          \
            {0, 0, 0}, 5, TSR_MUON_ORIGINAL, 0, 0, TSR_NULL, 0, TSR_NULL                           \
    }
#define TSR_MUON_INIT                                                                              \
    {                                                                                              \
        sizeof(tsr_optimizer_options), TSR_MUON, 0.1, 0.95, 0, 1, 0, 0, 1e-7, 0, 0, 1,             \
            {3.4445, -4.7750, 2.0315}, 5, TSR_MUON_ORIGINAL, 0, 0, TSR_NULL, 0, TSR_NULL           \
    }
/** @} */

/**
 * Brings gradients to the layouts of the states that tsr_optimizer_update() would make with these
 * options, and replaces them in `gradients`: Partial ones are all-reduced, or reduce-scattered. All
 * moves follow one another, so that small ones share an exchange. `options` NULL: TSR_SGD_INIT.
 */
TSR_API void tsr_optimizer_reduce(tsr_program *program, size_t count, const tsr_value *parameters,
                                  tsr_value *gradients, const tsr_optimizer_options *options);

/**
 * Divides gradients by a loss scale, and replaces them in `gradients`; `scale` is a float without
 * dims, which each run gives, and by which the loss was multiplied, or TSR_NONE: 1. `*finite`,
 * where not NULL, gets a bool without dims, the same on all ranks: 1 if all elements of all
 * gradients are finite. Partial gradients are all-reduced first, and those of bf16 and f16 become
 * f32.
 */
TSR_API void tsr_optimizer_unscale(tsr_program *program, size_t count, tsr_value *gradients,
                                   tsr_value scale, tsr_value *finite);

/**
 * Multiplies gradients by min(1, max_norm / (norm + 1e-6)), and replaces them in `gradients`, where
 * norm is the square root of the sum of the squares of all their elements. Each element counts
 * once, however many ranks have it. Sums are taken in a fixed order, so that all ranks, and all
 * runs, have the same bits. `*norm`, where not NULL, gets the norm, an f64 without dims;
 * `max_norm` INFINITY only takes it. Partial gradients are all-reduced first, and those of bf16 and
 * f16 become f32.
 */
TSR_API void tsr_optimizer_clip(tsr_program *program, size_t count, tsr_value *gradients,
                                double max_norm, tsr_value *norm);

/**
 * Records the update of `count` parameters, each a tsr_state(), by gradients of their shapes.
 * `learning_rate` is a float without dims, f64 for PyTorch's bits. `step`, a float or integer
 * without dims, is the number of the step, from 1: of those that were not skipped. SGD without
 * dampening, Lion and Muon take TSR_NONE. All ranks give the same. `finite`, TSR_NONE or the bool
 * of tsr_optimizer_unscale(): where it is 0, weights and states stay as they are, bit for bit.
 * `options` NULL: TSR_SGD_INIT.
 *
 * SGD, AdamW and Lion are one op for each parameter, which passes memory once. Muon
 * brings whole matrices to balanced owners, which work on them alone, and takes them back: matrices
 * of one shape and layout share a tensor, so that a move takes all of them.
 *
 * Errors: a parameter that is no state, or is not of the dtypes above; a gradient of another shape
 * or mesh; a learning rate, step or `finite` that is not as said; a parameter of Muon that has not
 * two dims; options out of range.
 */
TSR_API void tsr_optimizer_update(tsr_program *program, size_t count, const tsr_value *parameters,
                                  const tsr_value *gradients, tsr_value learning_rate,
                                  tsr_value step, tsr_value finite,
                                  const tsr_optimizer_options *options);

/** How a learning rate changes. */
typedef enum tsr_schedule_kind {
    TSR_SCHEDULE_CONSTANT = 0, /**< it does not, after the warm-up */
    TSR_SCHEDULE_LINEAR,       /**< along a line from `peak` to `floor` */
    TSR_SCHEDULE_COSINE        /**< along half a cosine from `peak` to `floor` */
} tsr_schedule_kind;

/** The learning rates of a training. */
typedef struct tsr_schedule {
    size_t size; /**< sizeof(tsr_schedule) */
    tsr_schedule_kind kind;
    double peak;    /**< the largest rate, which the warm-up ends with */
    double floor;   /**< the rate from step `steps` on */
    int64_t warmup; /**< steps in which the rate grows from 0, along a line */
    int64_t steps;  /**< of the whole training, the warm-up included; constant: not used */
} tsr_schedule;

/** 1e-3 in every step. */
#define TSR_SCHEDULE_INIT                                                                          \
    {                                                                                              \
        sizeof(tsr_schedule), TSR_SCHEDULE_CONSTANT, 1e-3, 0, 0, 0                                 \
    }

/**
 * The learning rate of step 0, 1, ..: a function of these numbers alone. With `floor` 0 it is that
 * of transformers' get_constant_, get_linear_ and get_cosine_schedule_with_warmup(): step s of a
 * warm-up has peak * s / warmup, so give `step` + 1 where the first step shall not be 0. Any
 * thread. TSR_ERROR_ARGUMENT: a pointer is NULL, the kind is unknown, a rate is not finite, or a
 * number of steps is below 0.
 */
TSR_API tsr_status tsr_schedule_at(const tsr_schedule *schedule, int64_t step, double *rate);

/** How a loss scale follows from runs: that of PyTorch's GradScaler. */
typedef struct tsr_loss_scale_options {
    size_t size;             /**< sizeof(tsr_loss_scale_options) */
    double growth;           /**< by which it is multiplied */
    double backoff;          /**< by which it is multiplied after gradients that are not finite */
    int64_t growth_interval; /**< after so many runs in a row with finite gradients */
} tsr_loss_scale_options;

/** GradScaler's defaults. */
#define TSR_LOSS_SCALE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(tsr_loss_scale_options), 2, 0.5, 2000                                               \
    }

/** A loss scale, which runs are given, and what it follows from. */
typedef struct tsr_loss_scale {
    double scale;        /**< 65536 at first */
    int64_t finite_runs; /**< in a row, since the scale changed */
} tsr_loss_scale;

/** GradScaler's first scale. */
#define TSR_LOSS_SCALE_INIT                                                                        \
    {                                                                                              \
        65536, 0                                                                                   \
    }

/** The loss scale of the next run, after one whose gradients were all finite (1) or not (0): a
 * function of these numbers alone. A scale that would not be finite stays. `options` NULL: the
 * defaults. Any thread. TSR_ERROR_ARGUMENT: `scale` is NULL, or options are out of range: growth
 * above 1, backoff above 0 and below 1, interval from 1. */
TSR_API tsr_status tsr_loss_scale_next(tsr_loss_scale *scale, int finite,
                                       const tsr_loss_scale_options *options);

#ifdef __cplusplus
}
#endif

#endif
