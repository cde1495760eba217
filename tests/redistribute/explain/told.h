/**
 * Checks everything that the plans of one move report, against the oracle's lists of owned
 * elements.
 *
 * Steps, transfers, figures and the survey are checked against each other, and against counts
 * element by element.
 */
#ifndef TESTS_EXPLAIN_TOLD_H
#define TESTS_EXPLAIN_TOLD_H

#include "oracle_random.h"

#include <tessera/explain.h>

typedef struct told_case {
    oracle_layout src, dst;
    oracle_numbers numbers; /**< storage for the layouts' sizes and blocks */
    int64_t world;          /**< ranks 0 to world - 1 have a plan */
    tsr_mode mode;
    tsr_objective objective;
    int64_t node[ORACLE_MAX_RANKS]; /**< node of each rank, if `nodes` is true */
    bool nodes;
    tsr_cost_profile profile;
} told_case;

/** Checks a case; a failure fails the test and prints the case as a command. */
void told_check(const told_case *c);

/** Fails the running test with a sentence and the case. */
void told_wrong(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif
