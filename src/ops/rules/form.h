/** A rule for operands of given shapes: which factor each dim is, and the size of each factor. */
#ifndef TSR_OPS_RULES_FORM_H
#define TSR_OPS_RULES_FORM_H

#include "ops/rules/parse.h"

#include <tessera/layout.h>
#include <tessera/sys/ops.h>

/** The factors of a form: the dims of "..." are the first TSR_MAX_DIMS, aligned at the right; named
 * ones follow. Compounds are numbered behind them. */
#define TSR_OP_FACTORS (TSR_MAX_DIMS + TSR_OP_LETTERS)

/** The names by which errors call an op and its operands. */
typedef struct tsr_op_names {
    const char *caller;                    /**< begins each sentence: "tsr_add" */
    const char *op;                        /**< "add" */
    const char *rule;                      /**< the rule's text */
    const char *operands[TSR_OP_OPERANDS]; /**< "x", "y" */
    unsigned kept; /**< operands, by bits, that sentences propose to move only where no other helps */
} tsr_op_names;

/** The factors of one tensor's dims. */
typedef struct tsr_op_dims {
    bool present; /**< false: an optional operand that is left out */
    bool added;   /**< the operand comes after "+" */
    int ndim;
    int factor[TSR_MAX_DIMS]; /**< of a compound TSR_OP_FACTORS + its index; TSR_OP_ONE: a dim of
                                   size 1 that is repeated along results */
} tsr_op_dims;

typedef struct tsr_op_form {
    const tsr_op_rule *rule;
    tsr_op_dims operands[TSR_OP_OPERANDS], results[TSR_OP_RESULTS];
    int64_t size[TSR_OP_FACTORS]; /**< -1: not known */
    tsr_op_marks marks[TSR_OP_FACTORS];
    bool sizes_vary; /**< whole and permuted factors may have another size in each tensor */
} tsr_op_form;

/** What a row adds to its rule. */
typedef struct tsr_op_shaping {
    unsigned optional;       /**< operands, by bits, that may be left out */
    const tsr_dtype *dtypes; /**< of the results */
    /** NULL, or completes the shape of a result, in which a dim is -1 whose size does not follow
     * from the operands'. Then whole and permuted factors may have another size in each tensor. */
    tsr_status (*shape_of)(const void *arg, int result, int64_t shape[TSR_MAX_DIMS]);
    const void *arg;
    /** NULL, or how the result lies along the factor marked "permute". */
    const tsr_op_placing *placing;
} tsr_op_shaping;

/**
 * Binds a rule to the shapes of `operands`, one for each of the rule's; NULL: it is left out. A dim
 * of "..." that has size 1 where another operand's is longer is read as 1. With `shape_of` factors
 * marked "whole" or "permute" may have another size in each operand, and the form has that of the
 * first. A factor that only compounds have gets its size from theirs and from the other factors';
 * if that does not suffice, from the results' shapes, that `shape_of` gives. `rule` must outlive
 * `out`. Pure. TSR_ERROR_ARGUMENT: numbers of dims or sizes do not fit the rule; the sentence names
 * both dims, or the compound that its factors do not divide.
 */
tsr_status tsr_op_form_bind(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_layout *const *operands,
                            const tsr_op_shaping *shaping, tsr_op_form *out);

/** The dim whose factor, or compound, is `factor`; -1: the tensor does not have it. */
int tsr_op_dims_find(const tsr_op_dims *dims, int factor);

/** The dim that has `factor` by itself or in a compound; -1: there is none. */
int tsr_op_form_find(const tsr_op_form *form, const tsr_op_dims *dims, int factor);

/** True if a tensor has a factor of a compound that it does not have as such. */
bool tsr_op_form_has_part(const tsr_op_form *form, const tsr_op_dims *dims, int compound);

/** The factors of a dim, major to minor: the dim's own, or those of its compound; their number. A
 * dim that is 1 has none. */
int tsr_op_form_factors(const tsr_op_form *form, int factor, int factors[TSR_MAX_DIMS]);

/** The size of a factor, or the product of a compound's; 1 for TSR_OP_ONE, -1: it is not known. */
int64_t tsr_op_form_size(const tsr_op_form *form, int factor);

/** The shape of a result; -1: it is not known. */
void tsr_op_form_shape(const tsr_op_form *form, int result, int64_t shape[TSR_MAX_DIMS]);

/** Writes a factor's name, or a compound's with parentheses, like snprintf(). */
size_t tsr_op_form_name(const tsr_op_form *form, int factor, char *text, size_t capacity);

#endif
