/** Sorting in place. Thread-safe. */
#ifndef TSR_BASE_SORT_H
#define TSR_BASE_SORT_H

#include <stddef.h>

/** Below, at or above 0, as for qsort(). `arg` is what tsr_sort() was given. */
typedef int tsr_compare(const void *a, const void *b, const void *arg);

/** Sorts `count` elements of `bytes`, ascending. Allocates nothing, where qsort() may behind the context's back. Not stable. What is sorted
 * already, or but for where it begins (3 4 1 2), costs a pass or two. */
void tsr_sort(void *array, size_t count, size_t bytes, tsr_compare *compare, const void *arg);

#endif
