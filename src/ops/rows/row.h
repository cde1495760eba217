/** A row of the table of ops, and what its functions are given. */
#ifndef TSR_OPS_ROWS_ROW_H
#define TSR_OPS_ROWS_ROW_H

#include "ops/kernels/call.h"
#include "ops/rules/propagate.h"

/** Room for a rule that a row writes. */
#define TSR_OP_RULE_TEXT 256

/** A call of an op, before it runs. */
typedef struct tsr_op_case {
    const char *caller; /**< begins sentences */
    const tsr_op *op;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< all of the row's, in its order */
    const tsr_layout *const *operands;                    /**< NULL: an optional operand that is left out */
} tsr_op_case;

struct tsr_op {
    const char *name;
    const char *rule; /**< the factor string; with `rule_of` the general form, for people */
    const char *operands[TSR_OP_MOST_OPERANDS + 1];
    const char *results[TSR_OP_MOST_RESULTS + 1];
    unsigned optional;                                    /**< operands, by bits, that may be left out */
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< with defaults */
    /** Checks dtypes and attributes, and gives the dtypes of results. Only optional operands may be
     * NULL. */
    tsr_status (*check)(const tsr_op_case *c, tsr_dtype results[TSR_OP_MOST_RESULTS]);
    /** NULL, or writes the rule for the operands' shapes and dtypes and the attributes, which are
     * checked. */
    tsr_status (*rule_of)(const tsr_op_case *c, char text[TSR_OP_RULE_TEXT]);
    /** NULL, or completes the shape of a result, in which a dim is -1 whose size does not follow from
     * the operands': one of a factor that results alone have, or that only compounds have, as in
     * "(a b) -> a b". With it, factors marked "whole" or "permute" may have another size in each
     * tensor. Called after check and rule_of, more than once. */
    tsr_status (*shape_of)(const tsr_op_case *c, int result, int64_t shape[TSR_MAX_DIMS]);
    tsr_host_kernel *host;
    int code; /**< given to the kernel */
    /** NULL, or makes the local result as strides over the first input's memory, in `*out`, whose
     * dtype and shape are set. `*fits` false: no strides can say it, and the result is new memory,
     * which `host` fills. Not for `_into`, which always copies by `host`. */
    tsr_status (*view)(const tsr_kernel_call *call, tsr_tensor *out, bool *fits);
    /** How often ranks meet where a factor marked "exchange" is cut; 0: the rule has none. */
    int exchanges;
    /** With exchanges: bytes of this rank's record of `call->stage`, equal on all ranks that
     * exchange. */
    tsr_kernel_bytes *record_bytes;
    /** NULL, or bytes of memory that the kernel wants beside its tensors. */
    tsr_kernel_bytes *workspace_bytes;
    /**
     * The gradient of each operand in terms of rows; NULL: it has none.
     *
     *     gradient := "dout" | operand | "like " operand | "none"
     *               | row "(" gradient { "," gradient } { "," setting } ")" [ "." result ]
     *     setting  := attribute "=" ( "0.5" | "-0.5" | operand )
     *
     * "like x" is x, Replicate where x is Partial, and its values are not read. A row takes the
     * values of this op's attributes of the same name, unless settings say otherwise; an operand
     * stands for its dtype. A row of several results is run once for all gradients that begin with
     * the same text and take one each, by ".0", ".1", ... "none" leaves an optional operand out, as
     * does an operand that was left out. Where operand i was repeated, its gradient is summed afterwards.
     */
    const char *gradients[TSR_OP_MOST_OPERANDS];
};

#endif
