/**
 * Walks along a tensor dim in ascending order, run by run.
 *
 * A part's position behind many blocks is a sum over them. A walk keeps its sums, so that it goes
 * through the blocks of a cut once, while each single look-up would start over.
 */
#ifndef TSR_PLACEMENT_WALK_H
#define TSR_PLACEMENT_WALK_H

#include "placement/layout.h"

/** A walk along the positions of one shard. Owns no memory. */
typedef struct tsr_shard_walk {
    const tsr_layout *layout;
    int dim;
    const int64_t *coordinate;         /**< borrowed */
    int64_t lengths[TSR_MAX_DIMS + 1]; /**< lengths[i] is the length of the piece that cut i divides; behind the last
                                          cut, the shard's */
    tsr_cut_mark marks[TSR_MAX_DIMS];  /**< one per cut */
} tsr_shard_walk;

/** Begins a walk and returns the shard's length. `layout` and `coordinate` are borrowed for the
 * walk. */
int64_t tsr_shard_walk_begin(tsr_shard_walk *walk, const tsr_layout *layout, int dim, const int64_t *coordinate);

/** Returns what tsr_layout_position() returns at local position `at`. */
tsr_cut_run tsr_shard_walk_at(tsr_shard_walk *walk, int64_t at);

/** What a walk knows of one part of a piece. */
typedef struct tsr_owner_mark {
    /** 1 + the indices of the part and of the parts it is cut from, as one number; 0: no mark */
    int64_t key;
    int64_t length; /**< the part's length */
    tsr_cut_mark mark;
} tsr_owner_mark;

/** A walk along global positions. */
typedef struct tsr_owner_walk {
    const tsr_layout *layout;
    int dim;
    tsr_owner_mark *marks[TSR_MAX_DIMS]; /**< one per cut: a table if the cut has listed blocks, else NULL */
    int64_t capacity[TSR_MAX_DIMS];
    int64_t steps; /**< blocks that were gone through for sums that the tables did not hold */
} tsr_owner_walk;

/** Begins a walk; tsr_owner_walk_end() must be called also after an error, TSR_ERROR_MEMORY. */
tsr_status tsr_owner_walk_begin(tsr_owner_walk *walk, const tsr_layout *layout, int dim);

/** Releases the walk's memory. */
void tsr_owner_walk_end(tsr_owner_walk *walk);

/** Returns what tsr_layout_owner_along() returns at global position `at`. */
tsr_cut_run tsr_owner_walk_at(tsr_owner_walk *walk, int64_t at, int64_t *coordinate);

#endif
