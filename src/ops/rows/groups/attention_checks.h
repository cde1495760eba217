/** What the rows of attention.c accept. */
#ifndef TSR_OPS_ROWS_GROUPS_ATTENTION_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_ATTENTION_CHECKS_H

#include "ops/rows/row.h"

/** q, k and v, behind dout if the row's code is 1, are floats of one dtype, and q has a multiple of
 * k's heads; attributes are in range. */
tsr_status tsr_check_attention(const tsr_op_case *c, tsr_dtype *results);

/** Heads of q are dims of their own, or of groups that share a head of k. */
tsr_status tsr_rule_of_attention(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The first operand is a float and has an even last dim, positions are integers; attributes are in
 * range. */
tsr_status tsr_check_rope(const tsr_op_case *c, tsr_dtype *results);

#endif
