/** What a training makes of the loss: gradients, and the update of weights by them. */
#ifndef TRAIN_STEP_H
#define TRAIN_STEP_H

#include "statement.h"

/** What a step does with gradients. */
typedef struct train_update {
    tsr_optimizer_options optimizer;
    double clip;          /**< INFINITY: gradients are not clipped */
    bool keeps_gradients; /**< as outputs: of the weight w as "d.w", before they are unscaled and clipped */
    bool scales_loss;     /**< by the input "scale", a number of the weights' dtype */
} train_update;

/** Behind the names of states that have the terms of a step's earlier parts. */
#define TRAIN_TERMS ".terms"

/**
 * Records a step: the update of all weights by inputs "rate" and "step" (f64, no dims), with the
 * outputs "finite", where the loss is scaled (0: gradients are not finite, and nothing changes),
 * "loss", and "norm" of all gradients before they are clipped. Of a step in parts it is the last
 * part: the terms of earlier parts are in states, w.terms of the weight w and "loss.terms", and are
 * summed over ranks with this part's. The loss that balances experts, where the model asks for one,
 * is the output "router_loss", the mean over all parts ("router.terms").
 */
tsr_status train_state_step(const train_model *model, const train_update *update, tsr_program *program);

/** Records a part that is not the last one: it adds its terms to these states, and sums nothing. */
tsr_status train_state_part(const train_model *model, const train_update *update, tsr_program *program);

#endif
