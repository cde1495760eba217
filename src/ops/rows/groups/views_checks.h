/** What the rows of views accept, their rules, shapes and placements: the functions `check`,
 * `rule_of`, `shape_of` and `place_of` of views.c. All take every dtype. */
#ifndef TSR_OPS_ROWS_GROUPS_VIEWS_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_VIEWS_CHECKS_H

#include "ops/rows/row.h"

/** Checks the attribute dim, the first, of operand 0, of which it counts `ndim` dims. */
tsr_status tsr_check_view_dim(const tsr_op_case *c, int ndim);

/** The attributes name an order of dims. */
tsr_status tsr_check_order(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_order(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The attribute shape is one to which x can be repeated. */
tsr_status tsr_check_expand(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_expand(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
tsr_status tsr_shape_of_expand(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);

/** The attribute dim lists dims of size 1. */
tsr_status tsr_check_squeeze(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_squeeze(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The attribute dim is where a dim of size 1 comes in. */
tsr_status tsr_check_unsqueeze(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_unsqueeze(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** Their gradients: the dims that squeeze took away from `like` come back, and the dim that
 * unsqueeze put in goes away. So dims of size 1 beside them keep their cuts. */
tsr_status tsr_check_squeeze_back(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_squeeze_back(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
tsr_status tsr_check_unsqueeze_back(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_unsqueeze_back(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** Operands that differ along the dim that `dim` names alone. */
tsr_status tsr_check_concat(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_shape_of_concat(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);
void tsr_place_of_concat(const tsr_op_case *c, tsr_op_placing *out);

/** How much comes before and after, and a value that the dtype has. */
tsr_status tsr_check_pad(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_shape_of_pad(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);
tsr_status tsr_rule_of_pad(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
void tsr_place_of_pad(const tsr_op_case *c, tsr_op_placing *out);

/** The dim that `dim` names has the factor marked "permute" in all tensors, other dims one each. */
tsr_status tsr_rule_of_permuted(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The dims that the attribute dim lists, or all, are whole. */
tsr_status tsr_check_flip(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_flip(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** The dim that `dim` names is whole. */
tsr_status tsr_check_roll(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_rule_of_roll(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** Tensors of at least two dims. */
tsr_status tsr_check_mask(const tsr_op_case *c, tsr_dtype *results);

#endif
