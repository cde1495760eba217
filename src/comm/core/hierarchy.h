/** How the ranks of a communicator of messages lie on nodes, and the memory of collectives that go by them (collectives/hierarchy.h). */
#ifndef TSR_COMM_CORE_HIERARCHY_H
#define TSR_COMM_CORE_HIERARCHY_H

#include "comm/core/object.h"

/** How the ranks of a communicator lie on nodes. */
struct tsr_hierarchy {
    int count, most; /**< nodes, and ranks of the largest */
    int own, place;  /**< this rank's node, and its place in it */
    int *node;       /**< one a rank */
    int *starts;     /**< count + 1: where each node's members begin, ascending */
    int *members;
    int64_t *bounds;       /**< of the call in flight: part r is elements bounds[r] to bounds[r + 1] - 1 */
    tsr_message *messages; /**< likewise: what is sent, then what is received, room for TSR_HIERARCHY_LIST a rank each */
    void *scratch;         /**< for reductions of callers that may not allocate: tsr_hierarchy_reserve() */
    size_t scratch_bytes;
};

/** Messages that a rank sends, or receives, in one exchange are no more than so many times the ranks. */
#define TSR_HIERARCHY_LIST 3

/** NULL where nodes make no difference: there is one, or all have one rank. The communicator's table, context, rank and size are known. */
tsr_status tsr_hierarchy_create(const tsr_comm *comm, tsr_hierarchy **out);

/** NULL is fine. */
void tsr_hierarchy_destroy(tsr_context *context, tsr_hierarchy *h);

/** Makes the scratch at least so large. On this rank alone. */
tsr_status tsr_hierarchy_reserve(tsr_context *context, tsr_hierarchy *h, size_t bytes);

#endif
