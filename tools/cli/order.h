/** Numbers in ascending order. */
#ifndef TESSERA_TOOLS_CLI_ORDER_H
#define TESSERA_TOOLS_CLI_ORDER_H

#include <stddef.h>
#include <stdint.h>

/** Sorts one or more, and returns the median: of an even number the mean of the two in the middle. */
double sort_to_median(double *values, size_t count);

/** Sorts, and leaves each rank once; returns how many are left, which are the first. */
size_t sort_ranks(int64_t *ranks, size_t count);

/** Where a rank stands among sorted ones; NULL if it does not. */
const int64_t *find_rank(const int64_t *ranks, size_t count, int64_t rank);

#endif
