/** How the ranks of a message engine's communicator lie on nodes, and the memory of hierarchical
 * collectives (collectives/hierarchy.h). */
#ifndef TSR_COMM_CORE_HIERARCHY_H
#define TSR_COMM_CORE_HIERARCHY_H

#include "comm/core/object.h"

/** Nodes are numbered from 0 in the order of their lowest ranks. */
struct tsr_hierarchy {
    int count, most; /**< the number of nodes, and of ranks on the largest node */
    int own, place;  /**< this rank's node, and its position among the node's members */
    int *node;       /**< of each rank */
    int *starts;     /**< count + 1 elements: node k has members[starts[k]] to members[starts[k + 1] - 1] */
    int *members;
    int64_t *bounds;       /**< of the call in flight: part r is elements bounds[r] to bounds[r + 1] - 1 */
    tsr_message *messages; /**< of the call in flight: sends, then receives, TSR_HIERARCHY_LIST per rank each */
    void *scratch;         /**< for reductions within calls that may not allocate, made by tsr_hierarchy_reserve() */
    size_t scratch_bytes;
};

/** In one exchange a rank sends, and receives, at most this many messages per rank of the
 * communicator. */
#define TSR_HIERARCHY_LIST 3

/** `*out` becomes NULL if nodes are not known or make no difference: there is only one, or each has
 * one rank. The communicator's table, context, rank and size must be set. */
tsr_status tsr_hierarchy_create(const tsr_comm *comm, tsr_hierarchy **out);

/** NULL is allowed. */
void tsr_hierarchy_destroy(tsr_context *context, tsr_hierarchy *h);

/** Makes the scratch at least `bytes` bytes large. Not collective. */
tsr_status tsr_hierarchy_reserve(tsr_context *context, tsr_hierarchy *h, size_t bytes);

#endif
