/**
 * Which replica serves which receiver.
 *
 * The k replicas of a source piece are numbered, and the ranks that need some of it without owning it counted from 0, both by row-major
 * coordinate of their own mesh; receiver t takes replica t mod k. Between two meshes owners are counted too and their turn goes unused.
 * The receivers are a product set over tensor dims, so that t is a sum of products: both sides compute it, from receiver to turn and back,
 * without listing anybody.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_TURN_H
#define TSR_REDISTRIBUTE_MATCH_TURN_H

#include "redistribute/match/problem.h"
#include "redistribute/match/reach.h"

/** Ways to go on once the coordinates on some mesh dims in front are chosen: a product of one factor for each tensor dim (its cuts' mesh
 * dims) and one for the mesh dims that cut nothing. */
typedef struct tsr_ways {
    int64_t factors[TSR_MAX_DIMS + 1];
} tsr_ways;

/** Destination coordinates in row-major order, each with its turn: those in a range that meet a source piece, less those of its owners. */
typedef struct tsr_turns {
    const tsr_problem *problem;
    tsr_reach *reach;                 /**< by tensor dim: the piece's, built; borrowed */
    tsr_range all, owned;             /**< who is counted, and whom to leave out */
    bool leaves_out;                  /**< else `owned` does not count */
    int64_t count;                    /**< turns in all */
    int64_t coordinate[TSR_MAX_DIMS]; /**< of the receiver that tsr_turns_seek() found last */

    /** The coordinates on mesh dims 0 .. chosen - 1 are chosen. With the first m of them: the turn of the first receiver that has them, how
     * many have, and in which ways; of all, and of the owners. */
    int chosen;
    int64_t first[TSR_MAX_DIMS + 1], size[TSR_MAX_DIMS + 1];
    tsr_ways ways[TSR_MAX_DIMS + 1][2];
    tsr_range ranges[2]; /**< what is left of `all` and `owned` */
} tsr_turns;

/** Ranges over destination coordinates: ranks that take values of the source piece at `src`, and those of them that own it. Between two
 * meshes nobody is found to own it. */
void tsr_turn_ranges(const tsr_problem *problem, const int64_t *src, tsr_range *all, tsr_range *owned);

/** Sets out to count; the fields down to `leaves_out` are set. */
void tsr_turns_begin(tsr_turns *turns);

/** Finds the receiver whose turn it is, 0 <= turn < count. Costs least where turns ascend. */
void tsr_turns_seek(tsr_turns *turns, int64_t turn);

/** The turn of the receiver at destination coordinate `receiver`. */
int64_t tsr_turns_of(tsr_turns *turns, const int64_t *receiver);

#endif
