/** Updates of parameters while they are recorded, and what the rules of optimizers share. */
#ifndef TSR_OPS_OPTIMIZERS_UPDATE_H
#define TSR_OPS_OPTIMIZERS_UPDATE_H

#include "ops/programs/program.h"

#include <tessera/optimizer.h>

/** What an update's numbers are, one for all parameters: f64 without dims. */
typedef struct tsr_update_inputs {
    tsr_program *program;
    const tsr_optimizer_options *options;
    tsr_value rate;   /**< the learning rate */
    tsr_value step;   /**< TSR_NONE: not given */
    tsr_value finite; /**< a bool; TSR_NONE: the step is always done */
} tsr_update_inputs;

/** The update of one parameter. */
typedef struct tsr_update {
    const tsr_update_inputs *in;
    tsr_program *program;
    tsr_value parameter, master; /**< states; master TSR_NONE: none */
    const char *name;            /**< of the parameter */
    tsr_layout *layout;          /**< of states: of the dtype in which all is computed */
    tsr_optimizer_view tensor;   /**< what the parameter is, or the tensor that it is a view of */
    tsr_layout *flat;            /**< the layout in which a view becomes a tensor of `layout`; NULL: it does not */
    tsr_value gradient;          /**< in `layout` */
    tsr_value old;               /**< the weight, or its master, in `layout` */
    tsr_value moved;             /**< what the parameter becomes, if it must be moved to its layout; else TSR_NONE */
} tsr_update;

/** Records a rule's formula for `count` parameters: stores states, and finishes each. */
typedef tsr_status tsr_update_rule(tsr_update *updates, size_t count);

/** Begins the formula of a parameter, whose gradient and weight are cast to its dtype. */
void tsr_update_begin(tsr_update *u);

/** A state "NAME.suffix" in a layout. */
tsr_value tsr_update_state(const tsr_update *u, const char *suffix, tsr_layout *layout);

/** A value of the parameter's shape in the layout of its states. */
tsr_value tsr_update_take(const tsr_update *u, tsr_value value);

/** Stores what a state becomes, unless the step is skipped. Nothing reads the state afterwards. */
void tsr_update_store(const tsr_update *u, tsr_value state, tsr_value value);

/** Stores what the weight becomes, and its master, unless the step is skipped; notes it in `moved`
 * if it must be moved first. */
void tsr_update_finish(tsr_update *u, tsr_value value);

/** tsr_update_finish() for a value that is the old weight where the step is skipped. */
void tsr_update_write(tsr_update *u, tsr_value value);

/** A number that follows from the inputs, an f64, as the parameter's formulas take it: on its mesh,
 * in its dtype. */
tsr_value tsr_update_number(const tsr_update *u, tsr_value number);

/** A constant of the formulas, in the parameter's dtype, and an f64 beside the learning rate. */
tsr_value tsr_update_constant(const tsr_update *u, double number);
tsr_value tsr_update_wide_constant(const tsr_update *u, double number);

/** x + factor * (y - x), or where factor is 0.5 or more y - (1 - factor) * (y - x), as torch.lerp()
 * has it. */
tsr_value tsr_update_lerp(const tsr_update *u, tsr_value x, tsr_value y, double factor);

/** 1 - learning rate * weight decay, an f64. */
tsr_value tsr_update_kept(const tsr_update *u);

/** The weight times tsr_update_kept(). */
tsr_value tsr_update_decayed(const tsr_update *u);

#endif
