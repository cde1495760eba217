/** What rows of mixtures of experts accept, and the rules that they write. */
#ifndef TSR_OPS_ROWS_GROUPS_MIXTURE_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_MIXTURE_CHECKS_H

#include "ops/rows/row.h"

/** experts and its gradient: all operands but ids, which are i64 or i32, are f64, or each is f32,
 * f16 or bf16; y has their dtype, or f32 if they differ, and a gradient that of its operand.
 * gate_up has twice the rows that down has columns. capacity is not negative, and an identity gives
 * tokens as long as they are. */
tsr_status tsr_check_experts(const tsr_op_case *c, tsr_dtype *results);

/** The rule of these rows: with a capacity tokens and slots must be whole, and with an identity the
 * length of tokens. */
tsr_status tsr_rule_of_experts(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** combine and its gradients: dtypes as above; the result has that of y, or of the operand whose
 * gradient it is. */
tsr_status tsr_check_combine(const tsr_op_case *c, tsr_dtype *results);

#endif
