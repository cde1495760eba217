/** What rows that index tables accept, and their rules. */
#ifndef TSR_OPS_ROWS_GROUPS_INDEXING_CHECKS_H
#define TSR_OPS_ROWS_GROUPS_INDEXING_CHECKS_H

#include "ops/rows/row.h"

/** Ids are i64 or i32, and the attribute dim names a dim of the table. An op that adds takes
 * numbers; one that reads takes any dtype, and embedding numbers. All other operands have one
 * dtype, which the result gets. The shapes of gather and scatter_add are PyTorch's. */
tsr_status tsr_check_indexing(const tsr_op_case *c, tsr_dtype *results);

/** Where the dim that is indexed is cut, what a rank reads is Partial(sum), and a rank adds what is
 * its own. Dtypes that have no Partial(sum) are read from whole dims. */
tsr_status tsr_rule_of_slices(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
tsr_status tsr_rule_of_elements(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);

/** Ids are i64 or i32; the result is i64. The attribute is the size of the result's last dim. */
tsr_status tsr_check_counting(const tsr_op_case *c, tsr_dtype *results);
tsr_status tsr_shape_of_counting(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);

#endif
