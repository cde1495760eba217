/**
 * Blocks of equal length, of which every shard has the same part.
 *
 * `interleave=k` cuts k blocks alike. If the blocks are equally long, and each cut of a tensor dim
 * deals out equal numbers of whole blocks or equal parts of each block, a shard is the same
 * interval of some adjacent blocks: two numbers describe it, however large k is.
 */
#ifndef TSR_PLACEMENT_BLOCKS_H
#define TSR_PLACEMENT_BLOCKS_H

#include "placement/layout.h"

/** What each shard has along a dim that is cut by blocks. */
typedef struct tsr_block_share {
    int64_t blocks, inside; /**< how many blocks, and how many positions inside each */
} tsr_block_share;

/** The number of blocks into which the outermost interleaved cut of `dim` divides the whole dim; 1:
 * no cut interleaves. */
int64_t tsr_layout_blocks(const tsr_layout *layout, int dim);

/** False if some cut of `dim` divides neither the `blocks` blocks nor their inside evenly. Else
 * inside[i], for each mesh dim i that cuts `dim`, tells whether it cuts inside blocks, and `share`
 * is what every shard has. */
bool tsr_layout_goes_by_blocks(const tsr_layout *layout, int dim, int64_t blocks, bool *inside, tsr_block_share *share);

#endif
