/** The blocks into which all ranks' cuts together divide a tensor of at most two dims, and who holds each: what pictures of layouts show.
 */
#ifndef TESSERA_TOOLS_DRAW_BLOCKS_H
#define TESSERA_TOOLS_DRAW_BLOCKS_H

#include "shards/owned.h"

#include <stdbool.h>
#include <tessera/layout.h>

/** Beyond these a picture is no help. */
#define BLOCKS_RANKS 64
#define BLOCKS_DIMS  2

/** Intervals that a rank may have along a dim: beyond them there are too many blocks to draw anyway. */
#define BLOCKS_INTERVALS 4096

/** The pieces into which the cuts divide a dim: piece i is [at[i], at[i + 1]). */
typedef struct block_cuts {
    int64_t *at;
    size_t count, capacity;
} block_cuts;

/** One rank, with what it owns along both of the picture's dims. */
typedef struct block_owner {
    int64_t rank;
    int64_t coordinate[TSR_MAX_DIMS];
    owned dim[BLOCKS_DIMS];
} block_owner;

/** Rows and columns are the last two dims of the tensor; one that it lacks is a single piece of length 1. */
typedef struct blocks {
    const tsr_layout *layout; /**< borrowed */
    int ndim;
    block_owner owners[BLOCKS_RANKS]; /**< in mesh order */
    size_t owner_count;
    block_cuts cuts[BLOCKS_DIMS];
} blocks;

/** Whether there are few enough dims, ranks and intervals. */
bool blocks_possible(const tsr_layout *layout);

/** The blocks of a layout for which they are possible; the caller finishes them. */
tsr_status blocks_read(const tsr_layout *layout, blocks *out);
void blocks_finish(blocks *b);

/** Whether the tensor has a dim of rows, or of columns (`dim` 0, 1). */
bool blocks_have_dim(const blocks *b, int dim);

/** Whether an owner holds a block. */
bool blocks_own(const blocks *b, const block_owner *owner, size_t row, size_t column);

/** Room for the name of any block. */
#define BLOCK_NAME_BYTES (BLOCKS_RANKS * 12)

/** Who holds a block: ranks parted by spaces are replicas, ranks joined by + hold terms of one value. Returns the text's length. */
size_t blocks_name(const blocks *b, size_t row, size_t column, char text[BLOCK_NAME_BYTES]);

#endif
