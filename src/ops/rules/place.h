/** Placements of results by a rule and, where the factor marked "permute" is cut, by how a row puts
 * results together along it. */
#ifndef TSR_OPS_RULES_PLACE_H
#define TSR_OPS_RULES_PLACE_H

#include "ops/rules/fit.h"

/** tsr_op_fit(), for a row with `placing`, or NULL. */
tsr_status tsr_op_place(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                        const tsr_op_placing *placing, tsr_op_fitted *out);

#endif
