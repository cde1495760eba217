/** Rules of reshapes: which factors the dims of two shapes have in common. */
#ifndef TSR_OPS_ROWS_RESHAPE_H
#define TSR_OPS_ROWS_RESHAPE_H

#include "ops/rows/row.h"

/** The attribute shape has as many elements as x; -1, once, is what is left. Or a second operand
 * has the shape. */
tsr_status tsr_check_reshape(const tsr_op_case *c, tsr_dtype *results);

/**
 * Splits dims into factors at all places where a dim of either shape ends, as in
 * `a (b c) -> (a b) c` for 4x6 to 8x3. Stretches of dims in which these places do not divide each
 * other, as in 4x6 to 6x4, are whole.
 */
tsr_status tsr_rule_of_reshape(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

tsr_status tsr_shape_of_reshape(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);

#endif
