/**
 * Hierarchical collectives, for message engines: each part enters a node once. In an all-gather one
 * rank of the node receives the part and sends it to the others; in a reduction the ranks of a node
 * first reduce what goes to another node. The ranks of a node take these parts in turn, so that no
 * rank and no link has all the work.
 */
#ifndef TSR_COMM_COLLECTIVES_HIERARCHY_H
#define TSR_COMM_COLLECTIVES_HIERARCHY_H

#include "comm/collectives/collective.h"
#include "comm/core/hierarchy.h"

/** Collective: gathers all ranks' parts into call->receive, at bounds that tsr_hierarchy_divide()
 * or tsr_hierarchy_divide_by_shares() has set. `part` is this rank's; it may lie at its place in
 * call->receive already. */
tsr_status tsr_hierarchy_all_gather(tsr_comm *comm, const tsr_collective *call, const void *part);

/** Collective: reduces part r of all ranks' `call->send` into `part` of rank r; bounds must be set.
 * The order is not that of ranks: for dtypes where every order gives the same bits, or callers that
 * allow any. `*local` is this rank's status so far; a failure of its kernels is stored there, and
 * the rank goes on exchanging so that its peers need not wait. A returned error is that of an
 * exchange: then ranks are no longer together. */
tsr_status tsr_hierarchy_reduce_scatter(tsr_comm *comm, const tsr_collective *call, void *part, tsr_status *local);

/** Collective: the root's `call->send` goes to every rank, once into each other node. */
tsr_status tsr_hierarchy_broadcast(tsr_comm *comm, const tsr_collective *call);

/** True if this call goes by nodes: on the host alone, and reductions only if every order gives the
 * same bits. */
bool tsr_hierarchy_serves(const tsr_comm *comm, const tsr_collective *call);

/** Sets comm->hierarchy->bounds: to the call's parts, or to the shares of an all-reduce. */
void tsr_hierarchy_divide(tsr_comm *comm, const tsr_collective *call);
void tsr_hierarchy_divide_by_shares(tsr_comm *comm, const tsr_collective *call);

/** Bytes of call->scratch that a reduction needs, the same on all ranks. Bounds must be set. */
size_t tsr_hierarchy_scratch_bytes(const tsr_comm *comm, const tsr_collective *call);

/** Upper bound of tsr_hierarchy_scratch_bytes() for `ranks` ranks, however they lie on nodes; the
 * longest part has `longest` elements. */
size_t tsr_hierarchy_most_scratch_bytes(int ranks, int64_t longest, size_t element_bytes);

#endif
