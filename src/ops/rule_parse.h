/** A rule's factor string, spelt out for operands of a given number of dims. Pure. */
#ifndef TSR_OPS_RULE_PARSE_H
#define TSR_OPS_RULE_PARSE_H

#include "ops/rule.h"
#include <stdbool.h>

/** Batch dim i is factor i; the other letters follow in the order in which they first appear. */
#define TSR_RULE_FACTORS (2 * TSR_MAX_DIMS)

typedef struct tsr_rule_term {
    int ndim;
    int factor[TSR_MAX_DIMS]; /**< of each tensor dim */
    bool added;               /**< comes after `+` */
} tsr_rule_term;

typedef struct tsr_rule_terms {
    int count; /**< operands */
    tsr_rule_term operands[TSR_RULE_OPERANDS], result;
    char letter[TSR_RULE_FACTORS]; /**< of each factor, for errors */
} tsr_rule_terms;

/** TSR_ERROR_ARGUMENT: an operand has too many or too few dims for its letters. */
tsr_status tsr_rule_parse(const tsr_rule *rule, const tsr_layout *const *operands, tsr_rule_terms *out);

/** The tensor dim of `term` that has `factor`, or -1. */
int tsr_rule_dim(const tsr_rule_term *term, int factor);

#endif
