/**
 * Which replica serves which receiver.
 *
 * The k replicas of a source piece are numbered, and the ranks that need some of it without owning it counted from 0, both by row-major
 * coordinate of their own mesh; receiver t takes replica t mod k. Between two meshes owners are counted too and their turn goes unused.
 * The receivers are a product set over tensor dims, so that t is a sum of products: both sides compute it without listing anybody.
 */
#ifndef TSR_REDISTRIBUTE_TURN_H
#define TSR_REDISTRIBUTE_TURN_H

#include "redistribute/overlap.h"
#include "redistribute/problem.h"

/** A source piece as its overlaps with the destination layout, one for each tensor dim: their groups are the destination keys that need it.
 */
typedef struct tsr_piece {
    const int64_t *coordinate; /**< source coordinate; only cut and kept dims count */
    const tsr_overlap *const *dims;
} tsr_piece;

/** The turn of the receiver at destination coordinate `receiver`. */
int64_t tsr_turn(const tsr_problem *problem, const tsr_piece *piece, const int64_t *receiver);

#endif
