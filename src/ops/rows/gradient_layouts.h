/** Layouts of gradients. */
#ifndef TSR_OPS_ROWS_GRADIENT_LAYOUTS_H
#define TSR_OPS_ROWS_GRADIENT_LAYOUTS_H

#include "ops/rows/formula.h"

/** A layout's placements, Replicate where they are Partial. */
void tsr_op_reduced(const tsr_layout *layout, tsr_placement placements[TSR_MAX_DIMS]);

/** Values of formulas that are layouts. `user` is given to `apply`. */
tsr_formula_values tsr_op_layout_values(tsr_formula_apply *apply, void *user);

/** The layout of the gradient of a result of a case: Replicate where the op made the result
 * Partial, of whatever kind. TSR_ERROR_UNSUPPORTED: an operand is Partial of max, min or prod, and
 * the result too. */
tsr_status tsr_op_result_gradient(const tsr_op_case *c, const tsr_layout *result, tsr_layout **out);

#endif
