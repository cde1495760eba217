/** Sorting in place. Thread-safe. */
#ifndef TSR_BASE_SORT_H
#define TSR_BASE_SORT_H

#include <stddef.h>

/** Returns less than, equal to or more than 0, as for qsort(). `arg` is passed on from
 * tsr_sort_array(). */
typedef int tsr_compare(const void *a, const void *b, const void *arg);

/** Sorts `count` elements of `bytes` bytes each, ascending. Not stable. Allocates nothing; qsort()
 * may, and not from the context's allocator. An array that is sorted already, or sorted but rotated
 * (3 4 1 2), takes a pass or two. */
void tsr_sort_array(void *array, size_t count, size_t bytes, tsr_compare *compare, const void *arg);

#endif
