/**
 * Which pieces of one layout a shard of another layout meets along a tensor dim, counted without
 * listing them.
 *
 * If the shard is one interval, and the pieces are intervals that lie in the order of their cuts,
 * the shard meets all pieces from the owner of its first position to the owner of its last. Those
 * whose coordinates are in a range are then counted by a sum over cuts, in which a run of equally
 * long parts is one term. In other layouts (interleave, blocks, sizes) the pieces are listed, at a
 * cost that grows with the cuts met.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_REACH_H
#define TSR_REDISTRIBUTE_MATCH_REACH_H

#include "redistribute/match/overlap.h"

/** Coordinates begin <= c < end on each mesh dim. */
typedef struct tsr_range {
    int64_t begin[TSR_MAX_DIMS], end[TSR_MAX_DIMS];
} tsr_range;

/** The owner of the first or the last position of a shard that is an interval. */
typedef struct tsr_reach_end {
    int64_t coordinate[TSR_MAX_DIMS]; /**< by mesh dim; set for the mesh dims that cut the tensor dim */
    int64_t lengths[TSR_MAX_DIMS]; /**< by cut: the length of the stretch that the cut divides; not set where the reach
                                      is dense */
} tsr_reach_end;

typedef struct tsr_reach {
    const tsr_layout *far;
    tsr_meter *meter; /**< borrowed */
    int dim;
    bool listed;

    bool empty;                /**< if not listed: the shard has no positions */
    bool dense;                /**< if not listed: no piece of `far` is empty, so that counting needs no lengths */
    int64_t begin, end;        /**< if not listed: the shard's global positions */
    tsr_reach_end first, last; /**< if not listed: the owners of the shard's first and last position */
    int64_t count;             /**< if not listed: the pieces in the range of tsr_reach_build() */
    tsr_segment segment;       /**< if not listed: what tsr_reach_meet() found last */

    tsr_overlap overlap; /**< if listed: the pieces in the range of tsr_reach_build() */
    bool marks;          /**< the groups of `overlap` carry marks (tsr_reach_mark()) */
} tsr_reach;

/** Sets what holds for all shards of `near`; the rest is zero. */
void tsr_reach_init(tsr_reach *reach, tsr_meter *meter, const tsr_layout *near, const tsr_layout *far, int dim);

/** Finds the pieces of `far` that `near`'s shard at `coordinate` meets and whose coordinates are in
 * `range`. Free `reach` also after an error. */
tsr_status tsr_reach_build(tsr_reach *reach, const tsr_layout *near, const int64_t *coordinate, const tsr_range *range);

/** Prepares tsr_reach_count() of the pieces in `marked`, which on each mesh dim is a single
 * coordinate or all of the range that tsr_reach_build() took. TSR_ERROR_ARGUMENT: the meter does
 * not allow looking at all pieces once more. */
tsr_status tsr_reach_mark(tsr_reach *reach, const tsr_range *marked);
void tsr_reach_free(tsr_reach *reach, tsr_context *context);

/**
 * How many of the pieces have coordinates in `range`. It must be the range of tsr_reach_build(), or
 * of tsr_reach_mark() if `marked`, except that some leading mesh dims may have single coordinates,
 * and the mesh dim after them a narrower range.
 */
int64_t tsr_reach_count(const tsr_reach *reach, const tsr_range *range, bool marked);

/** How many pieces tsr_reach_build() found. */
int64_t tsr_reach_total(const tsr_reach *reach);

/** Takes out of a range the coordinates that no piece can have, judging by the owners of the
 * shard's ends. */
void tsr_reach_narrow(const tsr_reach *reach, tsr_range *range);

/** The segments that the shard shares with the piece at `far_coordinate`, which it must meet.
 * `*segments` is valid until the next call. */
tsr_segments tsr_reach_meet(tsr_reach *reach, const int64_t *far_coordinate, const tsr_segment **segments);

#endif
