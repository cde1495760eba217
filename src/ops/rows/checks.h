/** What rows accept: the functions `check` and `rule_of` of rows. */
#ifndef TSR_OPS_ROWS_CHECKS_H
#define TSR_OPS_ROWS_CHECKS_H

#include "ops/rows/row.h"

/** TSR_ERROR_ARGUMENT: an operand has a dtype that the op does not take; it takes `taken`. */
tsr_status tsr_refuse_dtype(const tsr_op_case *c, int operand, const char *taken);

/** All operands and the result have one dtype, for which the pointwise op `code` of the row has a
 * loop. */
tsr_status tsr_check_pointwise(const tsr_op_case *c, tsr_dtype *results);

/** tsr_check_pointwise() for the operands behind the first, which is bool. */
tsr_status tsr_check_condition(const tsr_op_case *c, tsr_dtype *results);

/** tsr_check_pointwise() for an op whose result is bool. */
tsr_status tsr_check_test(const tsr_op_case *c, tsr_dtype *results);

/** tsr_check_pointwise() for an op on the first operand and a second one, which is bool. */
tsr_status tsr_check_fill(const tsr_op_case *c, tsr_dtype *results);

/** The result has the dtype that the attribute names. */
tsr_status tsr_check_cast(const tsr_op_case *c, tsr_dtype *results);

/** The attributes dims and keep, and the dtypes that the reduction of the row's code takes. */
tsr_status tsr_check_sum(const tsr_op_case *c, tsr_dtype *results);

/** The attributes dims and keep of the sum of squares of floats, which is f64, or of a test of
 * them; a second operand is a number without dims, of the dtype in which the first is computed. */
tsr_status tsr_check_squares(const tsr_op_case *c, tsr_dtype *results);

/** The attribute shape is one from which the operand's shape comes by repetition. */
tsr_status tsr_check_sum_to(const tsr_op_case *c, tsr_dtype *results);

/** The second operand has the first one's dtype, and the shape from which a sum over dims would
 * come to the first one's; dims are those of the second. */
tsr_status tsr_check_spread(const tsr_op_case *c, tsr_dtype *results);

/** The attributes dims and keep; a float. */
tsr_status tsr_check_moments(const tsr_op_case *c, tsr_dtype *results);

/** tsr_check_spread() of floats, for rows whose second operand's values are read. */
tsr_status tsr_check_shares(const tsr_op_case *c, tsr_dtype *results);

/** Checks that an operand's dtype is one for which the pointwise op `code` has a loop. */
tsr_status tsr_check_takes(const tsr_op_case *c, int operand, int code);

/** A cast that loses nothing is linear; one to a float, or that loses nothing, rises. */
tsr_status tsr_rule_of_cast(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** Dims are reduced as the row's code says, or exchanged in rows that exchange. */
tsr_status tsr_rule_of_sum(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
tsr_status tsr_rule_of_sum_to(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
tsr_status tsr_rule_of_spread(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

#endif
