/**
 * Collectives over nodes, on an engine that sends messages: each part crosses into a node once. An all-gather sends it to one rank there,
 * which hands it on; a reduction adds up inside a node what goes to another one. Parts go to the ranks of a node in turn, so that none of
 * them, and no link of theirs, has all the work.
 */
#ifndef TSR_COMM_COLLECTIVES_HIERARCHY_H
#define TSR_COMM_COLLECTIVES_HIERARCHY_H

#include "comm/collectives/collective.h"
#include "comm/core/hierarchy.h"

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
