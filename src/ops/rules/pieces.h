/** How a dim is cut that is put together of pieces of other dims, or is a piece of one: what slice,
 * concat and pad do to a dim that is cut. Pure; all ranks come to the same answer. */
#ifndef TSR_OPS_RULES_PIECES_H
#define TSR_OPS_RULES_PIECES_H

#include <tessera/layout.h>

#include <stdbool.h>

/** Elements start, start + step, .. below `end` of a dim of `size`, which lie in another dim from
 * `offset` on. `cuts` are that dim's: for each dim of the mesh a Shard of dim 0, or Replicate. */
typedef struct tsr_piece {
    const tsr_placement *cuts;
    int64_t size, start, end, step, offset;
} tsr_piece;

/** Pieces in ascending order of their offsets; they do not overlap. */
typedef struct tsr_pieces {
    const tsr_mesh *mesh;
    int count;
    const tsr_piece *pieces;
    int64_t size; /**< of the dim that the pieces lie in; what no piece covers is anybody's */
} tsr_pieces;

/** The number of a piece's elements. */
int64_t tsr_piece_count(const tsr_piece *piece);

/** `*match` is true if under `cuts` of the dim that the pieces lie in each coordinate owns the
 * elements of the pieces that it owns where they come from. */
tsr_status tsr_pieces_match(const tsr_pieces *pieces, const tsr_placement *cuts, bool *match);

/**
 * Finds cuts that match, in the plainest form: those of the first piece's dim, chunk, balanced or
 * unit, interleave, blocks, sizes. `*found` false: there are none. Lists are borrowed from the
 * pieces' cuts, or lie in `*numbers`, which the caller gives to tsr_release() with the mesh's
 * context; NULL: there are none.
 */
tsr_status tsr_pieces_cut(const tsr_pieces *pieces, tsr_placement *cuts, int64_t **numbers, bool *found);

#endif
