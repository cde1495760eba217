/** Whether placements of operands fit a rule, and the placements of results. Pure: it depends on
 * placements, sizes and the mesh alone, so every rank comes to the same answer. */
#ifndef TSR_OPS_RULES_FIT_H
#define TSR_OPS_RULES_FIT_H

#include "ops/rules/fitted.h"

/** Finds the placements of all results, or why there are none (`misfit.kind` is not TSR_OP_FITS).
 * Lists of sizes and blocks are borrowed from `operands`, too. On mesh dims of size 1 results are
 * Replicate. The status is an error only for lack of memory or beyond the context's bounds. In any
 * case tsr_op_fitted_clear() frees what `out` has. */
tsr_status tsr_op_fit(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                      tsr_op_fitted *out);

void tsr_op_fitted_clear(tsr_op_fitted *fitted);

#endif
