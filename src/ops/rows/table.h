/** Reads attributes, and propagates layouts through rows. Pure. */
#ifndef TSR_OPS_ROWS_TABLE_H
#define TSR_OPS_ROWS_TABLE_H

#include "ops/rows/row.h"

/** TSR_ERROR_ARGUMENT: `op` is NULL, or else `operands`, or else the argument called `last`. */
tsr_status tsr_op_refuse_null(const char *caller, const void *op, const void *operands, const char *last);

/**
 * Begins a case: reads `count` attributes, of any order. `operands` has a layout for each of the
 * row's operands; NULL: an optional one is left out. TSR_ERROR_ARGUMENT: an operand is NULL; an
 * attribute is unknown, or of another kind; a word is not one of the op's.
 */
tsr_status tsr_op_begin(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        const tsr_layout *const *operands, tsr_op_case *out);

/** An attribute as tsr_op_begin() takes it, from one of a case, which has all words of a row. */
tsr_attribute tsr_attribute_given(const tsr_attribute *of_case);

/** The rule of a case, and what its row adds to it. */
typedef struct tsr_op_ruling {
    char text[TSR_OP_RULE_TEXT]; /**< of the rule, if the row writes it */
    tsr_op_rule rule;
    tsr_op_names names;
    tsr_dtype dtypes[TSR_OP_MOST_RESULTS];
    tsr_op_placing placing;
    tsr_op_shaping shaping;
} tsr_op_ruling;

/** Checks a case, and reads its rule. `out` points into itself, and to `c`. */
tsr_status tsr_op_read_rule(const tsr_op_case *c, tsr_op_ruling *out);

/** The layouts of the results of a case, as tsr_op_propagate(), and the mesh dims along which ranks
 * meet. */
tsr_status tsr_op_infer(const tsr_op_case *c, tsr_op_inferred *out);

#endif
