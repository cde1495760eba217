/**
 * Finds the owners of rows: the part of a layout's dim 0 that has a row, and the row there.
 *
 * The runs of the dim lie in a list, and a table of buckets leads into it, so that a look-up takes
 * a few instructions in any order of rows. A layout that interleaves so finely that its runs are
 * too many is walked instead (placement/walk.h).
 */
#ifndef TSR_TENSOR_ROWS_FINDER_H
#define TSR_TENSOR_ROWS_FINDER_H

#include "placement/walk.h"

#include <stdbool.h>

/** Rows from `begin` on, up to the next run, are rows from `local` on of part `part`. */
typedef struct tsr_row_run {
    int64_t begin, local, part;
} tsr_row_run;

/** A row's part, and its number there. Parts are numbered as by tsr_layout_owners(). */
typedef struct tsr_row_place {
    int64_t part, local;
} tsr_row_place;

/** Owns the list, the buckets and the walk; borrows the layout. */
typedef struct tsr_row_finder {
    const tsr_layout *layout;
    tsr_row_run *runs; /**< ascending; behind the last one, a run that begins at the number of rows. NULL: walk */
    uint32_t *buckets; /**< for each 2^shift rows, the run that has their first one */
    int shift;
    tsr_owner_walk walk;
} tsr_row_finder;

/** `layout` has a dim, and outlives the finder. tsr_row_finder_close() must be called also after an
 * error, TSR_ERROR_MEMORY. */
tsr_status tsr_row_finder_open(tsr_row_finder *finder, const tsr_layout *layout);

/** Frees the finder's memory; one that is all 0 is fine. */
void tsr_row_finder_close(tsr_row_finder *finder);

/** tsr_row_find() by the walk. */
tsr_row_place tsr_row_walk(tsr_row_finder *finder, int64_t row);

/** Where `row` is, which is in range. */
static inline tsr_row_place tsr_row_find(tsr_row_finder *finder, int64_t row)
{
    if (!finder->runs)
        return tsr_row_walk(finder, row);
    const tsr_row_run *run = finder->runs + finder->buckets[row >> finder->shift];
    while (row >= run[1].begin)
        run++;
    return (tsr_row_place){run->part, run->local + (row - run->begin)};
}

/** The number of parts of the layout's dim 0. */
int64_t tsr_row_parts(const tsr_layout *layout);

#endif
