/** Layouts of results from layouts of operands, by a rule. Pure. */
#ifndef TSR_OPS_RULES_PROPAGATE_H
#define TSR_OPS_RULES_PROPAGATE_H

#include "ops/rules/form.h"

/**
 * The layouts of a rule's results, with the dtypes `dtypes`; the caller owns each. Operands are one
 * for each of the rule's; NULL: it is left out, which `optional` allows by bits.
 *
 * TSR_ERROR_ARGUMENT: meshes, numbers of dims or sizes do not match; or the placements do not fit:
 * the sentence names op, operands and mesh dim, and layouts of operands that were tried and fit.
 */
tsr_status tsr_op_propagate_rule(const tsr_op_rule *rule, const tsr_op_names *names, unsigned optional,
                                 const tsr_layout *const *operands, const tsr_dtype dtypes[TSR_OP_RESULTS],
                                 tsr_layout *results[TSR_OP_RESULTS]);

#endif
