/**
 * Which pieces of a layout one shard of another meets along a tensor dim, counted without listing them.
 *
 * A shard that is one interval meets the pieces from the owner of its first position to the owner of its last, where these pieces are
 * intervals too and lie one after the other in the order of their cuts. Counting those in a range of coordinates is then a sum over cuts,
 * in which parts of equal length count alike. What lies otherwise (interleave, blocks, sizes) is listed: its cost is that of the cuts met.
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
    int64_t coordinate[TSR_MAX_DIMS]; /**< by mesh dim, where that cuts the dim */
    int64_t lengths[TSR_MAX_DIMS];    /**< by cut: of the stretch that it divides; not where the reach is dense */
} tsr_reach_end;

typedef struct tsr_reach {
    const tsr_layout *far;
    tsr_meter *meter; /**< borrowed */
    int dim;
    bool listed;

    bool empty;                /**< if not listed: the shard is */
    bool dense;                /**< no piece of `far` is, so that nobody asks for lengths */
    int64_t begin, end;        /**< the shard's interval */
    tsr_reach_end first, last; /**< the owners of its ends */
    int64_t count;             /**< pieces in the range given */
    tsr_segment segment;       /**< what tsr_reach_meet() found */

    tsr_overlap overlap; /**< if listed: the pieces in the range given */
    bool marks;          /**< some of its groups are marked */
} tsr_reach;

/** What holds for all shards of `near`; the rest is zero. */
void tsr_reach_init(tsr_reach *reach, tsr_meter *meter, const tsr_layout *near, const tsr_layout *far, int dim);

/** The pieces of `far` that `near`'s shard at `coordinate` meets and whose coordinates are in `range`. To be freed also after an error. */
tsr_status tsr_reach_build(tsr_reach *reach, const tsr_layout *near, const int64_t *coordinate, const tsr_range *range);

/** Gets ready to count apart those in `marked`, single coordinates or the whole range on each mesh dim. TSR_ERROR_ARGUMENT: the meter does
 * not allow to look at all pieces once more. */
tsr_status tsr_reach_mark(tsr_reach *reach, const tsr_range *marked);
void tsr_reach_free(tsr_reach *reach, tsr_context *context);

/**
 * How many of the pieces have coordinates in `range`: the range built with, or if `marked` that of tsr_reach_mark(), but for single
 * coordinates on some mesh dims in front and a narrower range on the next.
 */
int64_t tsr_reach_count(const tsr_reach *reach, const tsr_range *range, bool marked);

/** All of them. */
int64_t tsr_reach_total(const tsr_reach *reach);

/** Leaves out of a range coordinates that none of the pieces has, as far as that is plain. */
void tsr_reach_narrow(const tsr_reach *reach, tsr_range *range);

/** The segments that the shard shares with the piece at `far_coordinate`, which is one that it meets; `*segments` is valid until the next
 * call. */
tsr_segments tsr_reach_meet(tsr_reach *reach, const int64_t *far_coordinate, const tsr_segment **segments);

#endif
