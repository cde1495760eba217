/** What rows along one dim, which the attribute `dim` names, have in common. */
#ifndef TSR_OPS_ROWS_ALONG_H
#define TSR_OPS_ROWS_ALONG_H

#include "ops/rows/row.h"

/** The dim that the attribute `dim` names in the first operand, where -1 is the last; -1: it names
 * none. */
int tsr_along_dim(const tsr_op_case *c);

/** The attribute dim names a dim of the first operand, whose dtype is a number. */
tsr_status tsr_check_along(const tsr_op_case *c);

/** tsr_check_along() for a dim that is not empty; the result is i64. */
tsr_status tsr_check_position(const tsr_op_case *c, tsr_dtype *results);

/** Writes the row's general rule, in which each term has "..." for the dims before the dim and
 * again for those behind it, for operands of as many dims as the first. */
tsr_status tsr_rule_along(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

#endif
