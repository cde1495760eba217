/** Reads the formulas of gradients (sys/ops.h) and computes with them: on dtensors, on layouts, or
 * on what else has layouts and rows. */
#ifndef TSR_OPS_ROWS_FORMULA_H
#define TSR_OPS_ROWS_FORMULA_H

#include "ops/rows/row.h"

/** Applies a row; the caller owns the results. `caller` begins sentences. */
typedef tsr_status tsr_formula_apply(void *user, const char *caller, const tsr_op *op, size_t count,
                                     const tsr_attribute *attributes, void *const *operands, void **results);

/** What formulas compute with. Values are pointers; NULL stands for an operand that is left out,
 * and is taken by `retain` and `release`. */
typedef struct tsr_formula_values {
    const tsr_layout *(*layout)(const void *value); /**< borrowed from the value */
    void *(*retain)(void *value);
    void (*release)(void *value);
    /** The operand with other values, Replicate where it is Partial; the caller owns it. */
    tsr_status (*like)(void *operand, void **out);
    tsr_formula_apply *apply;
    void *user; /**< given to `apply` */
} tsr_formula_values;

/**
 * Makes the gradients that are wanted, of a case whose operands are `operands`, from that of its
 * first result. `made` has a NULL for each operand; the caller owns each that is set. Nothing is
 * made after an error.
 */
tsr_status tsr_formula_gradients(const tsr_formula_values *values, const tsr_op_case *c, void *const *operands,
                                 void *gradient, const bool *wanted, void **made);

#endif
