/** Ranks that hold the same shard, and how they share work on its elements. */
#ifndef TSR_TENSOR_REPLICAS_H
#define TSR_TENSOR_REPLICAS_H

#include "placement/layout.h"

/** One of the `count` ranks that hold a shard. */
typedef struct tsr_replica {
    int64_t number, count;
} tsr_replica;

/** The rank at `coordinate` of a layout without Partial. Replicas are numbered by row-major
 * coordinate along the mesh dims that do not cut the tensor. */
tsr_replica tsr_replica_at(const tsr_layout *layout, const int64_t *coordinate);

/** Elements [*first, *end) of the `elements` of the shard are this replica's. All replicas together
 * have each once, as evenly as possible. */
void tsr_replica_share(tsr_replica replica, int64_t elements, int64_t *first, int64_t *end);

#endif
