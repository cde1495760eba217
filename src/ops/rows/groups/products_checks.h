/** What rows of products accept, and the rules that they write. */
#ifndef TSR_OPS_ROWS_GROUPS_PRODUCTS_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_PRODUCTS_CHECKS_H

#include "ops/rows/row.h"

/** All operands but those in `skipped`, by bits, are f64, or each is f32, f16 or bf16. `*joined` is
 * their dtype, or f32 if they differ. */
tsr_status tsr_check_floats(const tsr_op_case *c, unsigned skipped, tsr_dtype *joined);

/** results[0], of tsr_check_floats(), becomes the dtype that the attribute dtype names, if the row
 * has it and it is set. */
tsr_status tsr_take_dtype(const tsr_op_case *c, tsr_dtype *results);

/** matmul, einsum and their gradients: operands are f64, or each is f32, f16 or bf16. The result
 * has their dtype, or f32 if they differ; a gradient has that of its operand. */
tsr_status tsr_check_product(const tsr_op_case *c, tsr_dtype *results);

/** linear and its gradients: dtypes as for tsr_check_product(); a gradient has the dtype that the
 * attribute dtype names. */
tsr_status tsr_check_linear(const tsr_op_case *c, tsr_dtype *results);

/** As tsr_check_linear() for all operands but the last, which is i64. */
tsr_status tsr_check_grouped(const tsr_op_case *c, tsr_dtype *results);

/** Operands are f32, f16 or bf16 in any mixture, but weights i8 and scales f32, and the weights'
 * last dim is 32 times that of the scales. */
tsr_status tsr_check_q8(const tsr_op_case *c, tsr_dtype *results);

/** The rule of matmul, einsum or a gradient for the operands' numbers of dims. */
tsr_status tsr_rule_of_product(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

#endif
