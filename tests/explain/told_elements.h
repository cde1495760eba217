/** Transfers, element by element: who has what he sends, and who gets what he lacks. */
#ifndef TESTS_EXPLAIN_TOLD_ELEMENTS_H
#define TESTS_EXPLAIN_TOLD_ELEMENTS_H

#include "told_story.h"

void elements_check(const story *s);

#endif
