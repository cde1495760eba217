/**
 * Going along a tensor dim in ascending order, run by run.
 *
 * A part's position behind many blocks is a sum over them. A walk keeps the sums that it met, so that it goes through the blocks of a cut
 * once, where single look-ups would start over at each.
 */
#ifndef TSR_PLACEMENT_WALK_H
#define TSR_PLACEMENT_WALK_H

#include "placement/layout.h"

/** Along the positions of one shard. Plain memory; nothing to free. */
typedef struct tsr_shard_walk {
    const tsr_layout *layout;
    int dim;
    const int64_t *coordinate;         /**< borrowed */
    int64_t lengths[TSR_MAX_DIMS + 1]; /**< lengths[i] is that of the piece that cut i meets, the last one the shard's */
    tsr_cut_mark marks[TSR_MAX_DIMS];  /**< by cut */
} tsr_shard_walk;

/** Returns the shard's length. */
int64_t tsr_shard_walk_begin(tsr_shard_walk *walk, const tsr_layout *layout, int dim, const int64_t *coordinate);

/** tsr_layout_position() at local position `at`. */
tsr_run tsr_shard_walk_at(tsr_shard_walk *walk, int64_t at);

/** What is known of one piece, and of which. */
typedef struct tsr_owner_mark {
    int64_t key;    /**< its parts in cut order as one number, plus 1; 0: of none */
    int64_t length; /**< of the part */
    tsr_cut_mark mark;
} tsr_owner_mark;

/** Along global positions. */
typedef struct tsr_owner_walk {
    const tsr_layout *layout;
    int dim;
    tsr_owner_mark *marks[TSR_MAX_DIMS]; /**< by cut: a table where the cut has blocks, else NULL */
    int64_t capacity[TSR_MAX_DIMS];
    int64_t steps; /**< over blocks, to find sums that were not kept */
} tsr_owner_walk;

/** To be ended also after an error. */
tsr_status tsr_owner_walk_begin(tsr_owner_walk *walk, const tsr_layout *layout, int dim);
void tsr_owner_walk_end(tsr_owner_walk *walk);

/** tsr_layout_owner() at global position `at`. */
tsr_run tsr_owner_walk_at(tsr_owner_walk *walk, int64_t at, int64_t *coordinate);

#endif
