/** The blocks of a picture of a layout: the cuts of all ranks together divide a tensor of at most
 * two dims into blocks, each held by some ranks. */
#ifndef TESSERA_TOOLS_DRAW_BLOCKS_H
#define TESSERA_TOOLS_DRAW_BLOCKS_H

#include "shards/owned.h"

#include <tessera/layout.h>

#include <stdbool.h>

/** Upper bounds of ranks and tensor dims for a picture. */
#define BLOCKS_RANKS 64
#define BLOCKS_DIMS  2

/** Upper bound of the intervals of a rank along a dim: more would make too many blocks to draw. */
#define BLOCKS_INTERVALS 4096

/** The pieces into which the cuts divide a dim: piece i is [at[i], at[i + 1]). */
typedef struct block_cuts {
    int64_t *at;
    size_t count, capacity;
} block_cuts;

/** A rank, with its intervals along both dims of the picture. */
typedef struct block_owner {
    int64_t rank;
    int64_t coordinate[TSR_MAX_DIMS];
    owned dim[BLOCKS_DIMS];
} block_owner;

/** The blocks of a layout. Rows and columns are the last two dims of the tensor; a dim that the
 * tensor lacks is one piece of length 1. */
typedef struct blocks {
    const tsr_layout *layout; /**< borrowed */
    int ndim;
    block_owner owners[BLOCKS_RANKS]; /**< in mesh order */
    size_t owner_count;
    block_cuts cuts[BLOCKS_DIMS];
} blocks;

/** True if the layout has few enough dims, ranks and intervals. */
bool blocks_possible(const tsr_layout *layout);

/** Makes the blocks of a layout for which blocks_possible() is true; the caller calls
 * blocks_finish(). TSR_ERROR_MEMORY. */
tsr_status blocks_read(const tsr_layout *layout, blocks *out);
void blocks_finish(blocks *b);

/** True if the tensor has a dim for rows (`dim` 0) or columns (`dim` 1). */
bool blocks_have_dim(const blocks *b, int dim);

/** True if an owner holds a block. */
bool blocks_own(const blocks *b, const block_owner *owner, size_t row, size_t column);

/** Bytes of the name of any block, with the NUL. */
#define BLOCK_NAME_BYTES (BLOCKS_RANKS * 12)

/** Writes the ranks that hold a block: ranks separated by spaces are replicas, ranks joined by +
 * hold terms of one value. Returns the length of the text. */
size_t blocks_name(const blocks *b, size_t row, size_t column, char text[BLOCK_NAME_BYTES]);

#endif
