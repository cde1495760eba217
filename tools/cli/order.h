/** Sorting of numbers, in ascending order. */
#ifndef TESSERA_TOOLS_CLI_ORDER_H
#define TESSERA_TOOLS_CLI_ORDER_H

#include <stddef.h>
#include <stdint.h>

/** Sorts `count` (at least 1) values and returns their median: for an even `count` the mean of the
 * two in the middle. */
double sort_to_median(double *values, size_t count);

/** Sorts ranks and drops repeats; returns how many are left, at the front of `ranks`. */
size_t sort_ranks(int64_t *ranks, size_t count);

/** A pointer to `rank` in sorted `ranks`; NULL if it is not there. */
const int64_t *find_rank(const int64_t *ranks, size_t count, int64_t rank);

#endif
