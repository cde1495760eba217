/** Cases of rules: operands as text, and the placements that results get. */
#ifndef TESTS_OPS_RULE_CASES_H
#define TESTS_OPS_RULE_CASES_H

#include "ops/rules/propagate.h"

#include <stddef.h>

/** A rule, and operands "SHAPE PLACEMENTS", such as "4x6 S(0)", "scalar R"; NULL: left out. */
typedef struct rule_case {
    const char *rule, *mesh;
    const char *operands[4];
    const char *expected;   /**< the results' placements, apart by a space; or what the sentence ends with */
    const char *results[2]; /**< shapes that a row would give; NULL: none */
} rule_case;

/** The layout of a text; fails the test if there is none. */
tsr_layout *rule_layout(const tsr_mesh *mesh, const char *text);

/** Propagates, and writes the results' placements. */
tsr_status rule_propagate(const rule_case *c, char *text, size_t capacity);

/** Checks that all cases of a list, up to one without a rule, are accepted, or refused, as they
 * say. */
void rule_accepted(const rule_case *cases);
void rule_refused(const rule_case *cases);

#endif
