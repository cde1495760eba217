/** The reports of all plans of a case, and independent counts of them. */
#ifndef TESTS_EXPLAIN_TOLD_STORY_H
#define TESTS_EXPLAIN_TOLD_STORY_H

#include "told.h"

typedef struct boxes {
    tsr_plan_transfer *at;
    size_t count, capacity;
} boxes;

typedef struct story {
    const told_case *c;
    oracle_move move;
    int64_t elements;
    tsr_layout *src, *dst;
    tsr_plan *plans[ORACLE_MAX_RANKS];
    boxes receives[ORACLE_MAX_RANKS], sends[ORACLE_MAX_RANKS];
    tsr_plan_figures figures[ORACLE_MAX_RANKS];
    tsr_plan_survey survey;
} story;

void story_begin(story *s, const told_case *c);
void story_end(story *s);

#endif
