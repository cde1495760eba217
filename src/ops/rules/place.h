/** Placements of results by a rule and, where the factor marked "permute" is cut, by how a row puts
 * results together along it. */
#ifndef TSR_OPS_RULES_PLACE_H
#define TSR_OPS_RULES_PLACE_H

#include "ops/rules/fit.h"

#include <tessera/sys/ops.h>

/** tsr_op_fit(), with `placing` NULL or for the only result. Lists of results are borrowed from
 * `operands`, or lie in `*numbers`, which the caller gives to tsr_release() with the mesh's
 * context. */
tsr_status tsr_op_place(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                        const tsr_op_placing *placing, tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS],
                        unsigned *exchanged, int64_t **numbers, tsr_op_misfit *misfit);

#endif
