/** How a dim is cut that is put together of pieces of other dims, or is a piece of one: what slice,
 * concat and pad do to a dim that is cut. Pure; all ranks come to the same answer. */
#ifndef TSR_OPS_RULES_PIECES_H
#define TSR_OPS_RULES_PIECES_H

#include "ops/rules/express.h"

/** Elements start, start + step, .. below `end` of a dim of `size`, which lie in another dim from
 * `offset` on. `cuts` are that dim's: for each dim of the mesh a Shard of dim 0, or Replicate. */
typedef struct tsr_piece {
    const tsr_placement *cuts;
    int64_t size, start, end, step, offset;
} tsr_piece;

/** Pieces in ascending order of their offsets, which do not overlap; the same mesh dims cut all. */
typedef struct tsr_pieces {
    const tsr_mesh *mesh;
    int count;
    const tsr_piece *pieces;
    int64_t size; /**< of the dim that the pieces lie in; what no piece covers is anybody's */
} tsr_pieces;

/** `*match` is true if under `cuts` of the dim that the pieces lie in each coordinate owns the
 * elements of the pieces that it owns where they come from. */
tsr_status tsr_pieces_match(const tsr_pieces *pieces, const tsr_placement *cuts, bool *match);

/** Finds cuts that match, in the plainest form. What no piece covers goes to those ranks that a
 * chunk or balanced gives it, or else, before the pieces to the first and behind them to the last
 * one. `*found` false: there are none. Lists belong to `lists`. */
tsr_status tsr_pieces_cut(const tsr_pieces *pieces, tsr_cut_lists *lists, tsr_placement *cuts, bool *found);

#endif
