/** Checks transfers element by element: senders have what they send, and receivers get what they
 * lack. */
#ifndef TESTS_EXPLAIN_TOLD_ELEMENTS_H
#define TESTS_EXPLAIN_TOLD_ELEMENTS_H

#include "told_story.h"

void elements_check(const story *s);

#endif
