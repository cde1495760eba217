/**
 * Which replica serves which receiver.
 *
 * The receivers of a source piece are the ranks that need some of it and do not own it. The k
 * replicas of the piece and its receivers are each numbered from 0 by row-major coordinate in their
 * own mesh; receiver t takes from replica t mod k. Between two meshes owners are numbered as
 * receivers too, and their turns go unused. Receivers are a product set over tensor dims, so t is a
 * sum of products: both sides compute the turn of a receiver, and the receiver of a turn, without
 * listing ranks.
 *
 * Two other files choose senders: match/homes.h those of regions that are reduced, and
 * schedule/nodes.h, where nodes are known, by which a copy in the receiver's own node comes first.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_TURN_H
#define TSR_REDISTRIBUTE_MATCH_TURN_H

#include "redistribute/match/problem.h"
#include "redistribute/match/reach.h"

/** How many destination coordinates are left once those on the leading mesh dims are chosen: the
 * product of one factor for each tensor dim (over the mesh dims that cut it) and one for the mesh
 * dims that cut nothing. */
typedef struct tsr_ways {
    int64_t factors[TSR_MAX_DIMS + 1];
} tsr_ways;

/** The receivers of a source piece and their turns: the destination coordinates in a range that
 * meet the piece, less those of the piece's owners, in row-major order. */
typedef struct tsr_turns {
    const tsr_problem *problem;
    tsr_reach *reach;                 /**< by tensor dim: what the source piece meets, already built; borrowed */
    tsr_range all, owned;             /**< the coordinates that are counted, and the owners' among them */
    bool leaves_out;                  /**< owners have no turn; else `owned` is ignored */
    int64_t count;                    /**< turns in all */
    int64_t coordinate[TSR_MAX_DIMS]; /**< of the receiver that tsr_turns_seek() found last */

    /** The coordinates on mesh dims 0 .. chosen - 1 are chosen. first[m]: the turn of the first
     * receiver that has the first m of these coordinates; size[m]: how many receivers have them;
     * ways[m]: the factors of all coordinates and of the owners' that are left. */
    int chosen;
    int64_t first[TSR_MAX_DIMS + 1], size[TSR_MAX_DIMS + 1];
    tsr_ways ways[TSR_MAX_DIMS + 1][2];
    tsr_range ranges[2]; /**< `all` and `owned`, narrowed to the chosen coordinates */
} tsr_turns;

/** Ranges of destination coordinates: `*all` of the ranks that take values of the source piece at
 * `src`, `*owned` of those among them that own the piece. Between two meshes owners are not found,
 * and `*owned` equals `*all`. */
void tsr_turn_ranges(const tsr_problem *problem, const int64_t *src, tsr_range *all, tsr_range *owned);

/** Starts counting; the caller has set the fields down to `leaves_out`. */
void tsr_turns_begin(tsr_turns *turns);

/** Finds the receiver of `turn`, 0 <= turn < count, and writes `coordinate`. Cheapest where turns
 * ascend. */
void tsr_turns_seek(tsr_turns *turns, int64_t turn);

/** The turn of the receiver at destination coordinate `receiver`. */
int64_t tsr_turns_of(tsr_turns *turns, const int64_t *receiver);

#endif
