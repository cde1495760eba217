/** A rule for operands of given shapes: which factor each dim is, and the size of each factor. */
#ifndef TSR_OPS_RULES_FORM_H
#define TSR_OPS_RULES_FORM_H

#include "ops/rules/parse.h"

#include <tessera/layout.h>

/** The factors of a form: the dims of "..." are the first TSR_MAX_DIMS, aligned at the right; named
 * ones follow. */
#define TSR_OP_FACTORS (TSR_MAX_DIMS + TSR_OP_LETTERS)

/** The names by which errors call an op and its operands. */
typedef struct tsr_op_names {
    const char *caller;                    /**< begins each sentence: "tsr_add" */
    const char *op;                        /**< "add" */
    const char *rule;                      /**< the rule's text */
    const char *operands[TSR_OP_OPERANDS]; /**< "x", "y" */
} tsr_op_names;

/** The factors of one tensor's dims. */
typedef struct tsr_op_dims {
    bool present; /**< false: an optional operand that is left out */
    bool added;   /**< the operand comes after "+" */
    int ndim;
    int factor[TSR_MAX_DIMS]; /**< TSR_OP_ONE: a dim of size 1 that is repeated along results */
} tsr_op_dims;

typedef struct tsr_op_form {
    const tsr_op_rule *rule;
    tsr_op_dims operands[TSR_OP_OPERANDS], results[TSR_OP_RESULTS];
    int64_t size[TSR_OP_FACTORS];
    tsr_op_marks marks[TSR_OP_FACTORS];
    bool sizes_vary; /**< whole and permuted factors may have another size in each tensor */
} tsr_op_form;

/**
 * Binds a rule to the shapes of `operands`, one for each of the rule's; NULL: it is left out. A dim
 * of "..." that has size 1 where another operand's is longer is read as 1. With `sizes_vary`
 * factors marked "whole" or "permute" may have another size in each operand, and the form has that
 * of the first. `rule` must outlive `out`. Pure. TSR_ERROR_ARGUMENT: numbers of dims or sizes do
 * not fit the rule; the sentence names both dims.
 */
tsr_status tsr_op_form_bind(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_layout *const *operands,
                            bool sizes_vary, tsr_op_form *out);

/** The dim whose factor is `factor`; -1: the tensor does not have it. */
int tsr_op_dims_find(const tsr_op_dims *dims, int factor);

/** The shape of a result. */
void tsr_op_form_shape(const tsr_op_form *form, int result, int64_t shape[TSR_MAX_DIMS]);

#endif
