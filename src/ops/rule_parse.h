/** Parses a rule's factor string for operands with given numbers of dims. Pure. */
#ifndef TSR_OPS_RULE_PARSE_H
#define TSR_OPS_RULE_PARSE_H

#include "ops/rule.h"

#include <stdbool.h>

/** How many factors there can be. Batch dim i is factor i; the letters' factors begin at
 * TSR_MAX_DIMS, in order of first appearance. */
#define TSR_RULE_FACTORS (2 * TSR_MAX_DIMS)

typedef struct tsr_rule_term {
    int ndim;
    int factor[TSR_MAX_DIMS]; /**< the factor of each tensor dim */
    bool added;               /**< the operand comes after `+` */
} tsr_rule_term;

typedef struct tsr_rule_terms {
    int count; /**< how many operands there are */
    tsr_rule_term operands[TSR_RULE_OPERANDS], result;
    char letter[TSR_RULE_FACTORS]; /**< the letter of each factor; `b` for batch dims */
} tsr_rule_terms;

/** Parses the rule's factor string for `operands`. TSR_ERROR_ARGUMENT, in a sentence that begins
 * with `caller`: an operand has too many or too few dims for its letters, or another number of
 * batch dims than the operands before it. */
tsr_status tsr_rule_parse(const char *caller, const tsr_rule *rule, const tsr_layout *const *operands,
                          tsr_rule_terms *out);

/** The tensor dim of `term` whose factor is `factor`; -1: there is none. */
int tsr_rule_dim(const tsr_rule_term *term, int factor);

#endif
