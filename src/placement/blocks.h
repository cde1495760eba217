/**
 * Blocks of equal length, of which every shard has the same part.
 *
 * `interleave=k` cuts k blocks alike. Where they are equally long, and each cut of a tensor dim deals out equal numbers of whole blocks or
 * equal parts of each, a shard is so many blocks side by side and of each the same interval: a product, however large k is.
 */
#ifndef TSR_PLACEMENT_BLOCKS_H
#define TSR_PLACEMENT_BLOCKS_H

#include "placement/layout.h"

/** What each shard has along a dim that goes by blocks. */
typedef struct tsr_block_share {
    int64_t blocks, inside; /**< how many, and how much of each */
} tsr_block_share;

/** The number of blocks into which the outermost interleaved cut of `dim` divides the whole of it; 1: there is none. */
int64_t tsr_layout_blocks(const tsr_layout *layout, int dim);

/** False if some cut of `dim` does not go by `blocks` blocks. Else `inside` says of the mesh dims that cut `dim` whether they cut inside
 * blocks, and `share` what all shards have. */
bool tsr_layout_goes_by_blocks(const tsr_layout *layout, int dim, int64_t blocks, bool *inside, tsr_block_share *share);

#endif
