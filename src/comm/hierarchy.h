/**
 * Collectives over nodes, on an engine that sends messages: each part crosses into a node once. An all-gather sends it to one rank there,
 * which hands it on; a reduction adds up inside a node what goes to another one. Parts go to the ranks of a node in turn, so that none of
 * them, and no link of theirs, has all the work.
 */
#ifndef TSR_COMM_HIERARCHY_H
#define TSR_COMM_HIERARCHY_H

#include "comm/collective.h"

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

/** All ranks' parts, as bounded by tsr_hierarchy_divide() or its like; in place where this rank's lies there already. */
tsr_status tsr_hierarchy_all_gather(tsr_comm *comm, const tsr_collective *call, const void *part);

/** Part r of `call->send` of all ranks, reduced in an order that differs from that of ranks: for what has the same bits in any, or where
 * any will do. `local` is what has gone wrong here so far; what does is added to it, so that the ranks stay together. An error says that
 * they do not. */
tsr_status tsr_hierarchy_reduce_scatter(tsr_comm *comm, const tsr_collective *call, void *part, tsr_status *local);

/** What the root has, once into every other node. */
tsr_status tsr_hierarchy_broadcast(tsr_comm *comm, const tsr_collective *call);

/** True if this collective of the caller's goes by nodes: reductions only where that is exact. */
bool tsr_hierarchy_serves(const tsr_comm *comm, const tsr_collective *call);

/** Sets the bounds: by counts, or for an all-reduce by shares. */
void tsr_hierarchy_divide(tsr_comm *comm, const tsr_collective *call);
void tsr_hierarchy_divide_by_shares(tsr_comm *comm, const tsr_collective *call);

/** What a reduction needs as call->scratch, with bounds that are set. The same on all ranks. */
size_t tsr_hierarchy_scratch_bytes(const tsr_comm *comm, const tsr_collective *call);

/** No less than that, of so many ranks on whatever nodes. */
size_t tsr_hierarchy_most_scratch_bytes(int ranks, int64_t longest, size_t element_bytes);

#endif
