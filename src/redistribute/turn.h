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

/** A source piece as its overlaps with the destination layout, one for each tensor dim: their groups are the destination keys that need it,
 * after tsr_turn_prepare().
 */
typedef struct tsr_piece {
    const int64_t *coordinate; /**< source coordinate; only cut and kept dims count */
    const tsr_overlap *const *dims;
} tsr_piece;

/** Makes the overlap along `dim` of the source piece at `src` ready for tsr_turn(): where counting a range of its groups takes more than
 * its ends, marks those that owners have. */
void tsr_turn_prepare(const tsr_problem *problem, const int64_t *src, int dim, tsr_overlap *overlap);

/** The turn of the receiver at destination coordinate `receiver`. */
int64_t tsr_turn(const tsr_problem *problem, const tsr_piece *piece, const int64_t *receiver);

#endif
