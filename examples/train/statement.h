/** The model and its training, stated once over whole tensors. */
#ifndef TRAIN_STATEMENT_H
#define TRAIN_STATEMENT_H

#include "layouts.h"

#include <tessera/optimizer.h>

/** What is stated. */
typedef struct train_model {
    const llama_config *config;   /**< borrowed */
    const train_layouts *layouts; /**< borrowed */
    int64_t batch, length;        /**< windows of a step, and tokens of a window */
    tsr_dtype dtype;              /**< f32, f64, or bf16: f32 weights, which layers see rounded to bf16 */
    double dropout;               /**< the part of elements that is 0 in training; 0: none */
} train_model;

/** The key, of Philox, that runs of a step give where there is dropout. */
#define TRAIN_DROPOUT_KEY "dropout"

/** The weights of a model, in the order of its statement. */
typedef struct train_weights {
    size_t count;
    tsr_value *values; /**< owned */
} train_weights;

void train_weights_finish(train_weights *weights);

/**
 * Records the model: inputs "tokens" and "targets" (batch, length), "positions" (length). Returns
 * the loss, the mean cross-entropy over all tokens, whole on every rank, and in `*router`, where
 * not NULL, the loss that balances experts, or TSR_NONE where the model asks for none. Weights are
 * states where `trains` is set, else parameters, with the names of checkpoints; the caller frees
 * the list. Does not communicate. An error is the program's.
 */
tsr_value train_state_loss(const train_model *model, bool trains, tsr_program *program, train_weights *weights,
                           tsr_value *router);

/**
 * Records a step: the output "loss" and the update of all weights by inputs "rate" and "step" (f64,
 * no dims), with gradients clipped to `clip` (INFINITY: not), whose norm is the output "norm". The
 * loss that balances experts, where the model asks for one, is the output "router_loss". With
 * `keeps_gradients` those of the weight w are the output "d.w", before they are clipped.
 */
tsr_status train_state_step(const train_model *model, const tsr_optimizer_options *optimizer, double clip,
                            bool keeps_gradients, tsr_program *program);

/** Records what generates text: inputs "tokens" (batch, length), "positions" (length) and "wanted"
 * (1), a position, whose logits in all windows are the output "logits" (batch, 1, vocab_size),
 * whole on every rank. */
tsr_status train_state_logits(const train_model *model, tsr_program *program);

/** Records the loss alone, the output "loss". */
tsr_status train_state_validation(const train_model *model, tsr_program *program);

#endif
