/** A row of the table of ops, and what its functions are given. */
#ifndef TSR_OPS_TABLE_ROW_H
#define TSR_OPS_TABLE_ROW_H

#include "ops/kernels/call.h"
#include "ops/rules/propagate.h"

/** Room for a rule that a row writes. */
#define TSR_OP_RULE_TEXT 256

/** A call of an op, before it runs. */
typedef struct tsr_op_case {
    const char *caller; /**< begins sentences */
    const tsr_op *op;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< all of the row's, in its order */
    const tsr_layout *const *operands;
} tsr_op_case;

struct tsr_op {
    const char *name;
    const char *rule; /**< the factor string; with `rule_of` the general form, for people */
    const char *operands[TSR_OP_MOST_OPERANDS + 1];
    const char *results[TSR_OP_MOST_RESULTS + 1];
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< with defaults */
    /** Checks dtypes and attributes, and gives the dtypes of results. Operands are not NULL. */
    tsr_status (*check)(const tsr_op_case *c, tsr_dtype results[TSR_OP_MOST_RESULTS]);
    /** NULL, or writes the rule for the operands' shapes and dtypes and the attributes, which are
     * checked. */
    tsr_status (*rule_of)(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
    tsr_host_kernel *host;
    int code; /**< given to the kernel */
    /**
     * The gradient of each operand in terms of rows; NULL: it has none.
     *
     *     gradient := "dout" | operand | "like " operand
     *               | row "(" gradient { "," gradient } { "," setting } ")"
     *     setting  := attribute "=" ( "0.5" | "-0.5" | operand )
     *
     * "like x" is x, Replicate where x is Partial, and its values are not read. A row takes the
     * values of this op's attributes of the same name, unless settings say otherwise; an operand
     * stands for its dtype. Where operand i was repeated, its gradient is summed afterwards.
     */
    const char *gradients[TSR_OP_MOST_OPERANDS];
};

#endif
