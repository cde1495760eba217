/** What rows of norms accept, and the rules that they write. */
#ifndef TSR_OPS_ROWS_GROUPS_NORMS_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_NORMS_CHECKS_H

#include "ops/rows/row.h"

/** The attribute dim names a dim; operands are floats, of one dtype. */
tsr_status tsr_check_softmax(const tsr_op_case *c, tsr_dtype *results);

/** The attributes dim, a list, and keep of logsumexp, and p of norms; operands are floats, of one
 * dtype. */
tsr_status tsr_check_norm(const tsr_op_case *c, tsr_dtype *results);

/** The attributes epsilon and dims of rms_norm and layer_norm; operands and results are floats, of
 * one dtype. */
tsr_status tsr_check_normalized(const tsr_op_case *c, tsr_dtype *results);

/** The dim that the attribute dim names is exchanged. */
tsr_status tsr_rule_of_softmax(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The dims that the attribute dim lists are exchanged, and the result lacks them. */
tsr_status tsr_rule_of_norm(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The result of a norm's gradient has the dims of x; they are exchanged where p is infinite. */
tsr_status tsr_rule_of_norm_gradient(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The last dims, as many as the attribute dims says, are exchanged. */
tsr_status tsr_rule_of_normalized(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
tsr_status tsr_rule_of_normalized_gradient(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

#endif
