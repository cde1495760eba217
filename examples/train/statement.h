/** The model and its training, stated once over whole tensors. */
#ifndef TRAIN_STATEMENT_H
#define TRAIN_STATEMENT_H

#include "layouts.h"
#include "shapes.h"

#include <tessera/optimizer.h>
#include <tessera/sys/status.h>

/** What is stated. */
typedef struct train_model {
    const llama_config *config;   /**< borrowed */
    const train_layouts *layouts; /**< borrowed */
    int64_t batch, length;        /**< windows, and tokens of a window */
    train_shapes *shapes;         /**< gets the matrices that are kept with one dim; NULL: not. Borrowed */
    tsr_dtype dtype;              /**< f32, f64, or bf16: f32 weights, which layers see rounded to bf16 */
    double dropout;               /**< the part of elements that is 0 in training; 0: none */
    int64_t whole; /**< windows of the step of which `batch` are a part (a micro-batch); 0: they are all */
} train_model;

/** The key, of Philox, that runs of a step give where there is dropout. */
#define TRAIN_DROPOUT_KEY "dropout"

/** True of a part of a step. */
bool train_is_part(const train_model *model);

/** The dtype in which weights are kept. */
tsr_dtype train_kept_dtype(const train_model *model);

/** The weights of a model, in the order of its statement. */
typedef struct train_weights {
    size_t count;
    tsr_value *values; /**< owned: as they are kept */
    tsr_value *used;   /**< owned: as layers use them, whose gradients are terms; of those that are kept with one dim
                            before they are matrices again */
    tsr_optimizer_view *views; /**< owned: of those that are kept with one dim, what they hold */
    tsr_kept_sentence failure; /**< its status is not TSR_OK where a weight lacks its layout or its place in the list */
} train_weights;

void train_weights_finish(train_weights *weights);

/** The error of a statement that was recorded: of its weights, else of the program. */
tsr_status train_weights_check(const train_weights *weights, const tsr_program *program);

/**
 * Records the model: inputs "tokens" and "targets" (batch, length), "positions" (length). Returns
 * the ranks' terms of the loss, the mean cross-entropy over all tokens of the step, and in
 * `*router`, where not NULL, the loss that balances experts, whole on every rank and times the
 * part's share of the step's windows, or TSR_NONE where the model asks for none. Weights are states
 * where `trains` is set, else parameters, with the names of checkpoints; the caller frees the list.
 * Does not communicate. train_weights_check() tells an error.
 */
tsr_value train_state_loss(const train_model *model, bool trains, tsr_program *program, train_weights *weights,
                           tsr_value *router);

/** Records what generates text: inputs "tokens" (batch, length), "positions" (length) and "wanted"
 * (1), a position, whose logits in all windows are the output "logits" (batch, 1, vocab_size),
 * whole on every rank. */
tsr_status train_state_logits(const train_model *model, tsr_program *program);

/** Records the loss alone, the output "loss". */
tsr_status train_state_validation(const train_model *model, tsr_program *program);

#endif
