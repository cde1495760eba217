/** Global positions of local elements along one dim: what kernels of positional factors, and those
 * that exchange along a dim, know of shards. */
#ifndef TSR_OPS_KERNELS_LINES_POSITIONS_H
#define TSR_OPS_KERNELS_LINES_POSITIONS_H

#include <tessera/layout.h>

/** The intervals of a shard along a dim, in the order of its memory. The `end` of each is the local
 * index behind it. */
typedef struct tsr_positions {
    const tsr_interval *list;
    int64_t count;  /**< intervals */
    int64_t length; /**< elements */
} tsr_positions;

/** The global index of a local one. */
int64_t tsr_positions_global(const tsr_positions *positions, int64_t local);

/** The local index of a global one; -1: the shard does not have it. */
int64_t tsr_positions_local(const tsr_positions *positions, int64_t global);

/** The number of intervals of a shard; 0 where they cannot be listed, of which
 * tsr_positions_read() then tells. */
int64_t tsr_positions_count(const tsr_layout *layout, const int64_t *coordinate, int dim);

/** Reads a shard's intervals into a buffer that has room for tsr_positions_count(). */
tsr_status tsr_positions_read(const tsr_layout *layout, const int64_t *coordinate, int dim, tsr_interval *buffer,
                              tsr_positions *out);

/** The most elements and intervals along a dim that a coordinate has, among those that differ from
 * `coordinate` in mesh dims that cut the dim. */
void tsr_positions_most(const tsr_layout *layout, const int64_t *coordinate, int dim, int64_t *elements,
                        int64_t *intervals);

#endif
