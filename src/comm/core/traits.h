/** What a communicator is and has. None of these communicates; what they say never changes, and is the same on all ranks. */
#ifndef TSR_COMM_CORE_TRAITS_H
#define TSR_COMM_CORE_TRAITS_H

#include <stdbool.h>
#include <tessera/comm.h>

/** True if peers' memory can be read in place: what the engine shares. */
bool tsr_comm_is_direct(const tsr_comm *comm);

/** True if all memory can be read in place, whoever allocated it. */
bool tsr_comm_shares_all(const tsr_comm *comm);

/** True if ranks share what they allocate, and not all memory: all ranks of a direct engine, of others those of a node. */
bool tsr_comm_shares_some(const tsr_comm *comm);

/** True if peers reach these bytes; direct communicators only. Each rank asks for its own memory. */
bool tsr_comm_shares(const tsr_comm *comm, const void *memory, size_t bytes);

/** False where the communicator is lent: the only group is all of it. */
bool tsr_comm_can_split(const tsr_comm *comm);

/** False where the engine says TSR_COMM_UNCHECKED: executions over it and its groups compare nothing. */
bool tsr_comm_is_checked(const tsr_comm *comm);

/** True if it is not direct, but may be split, and groups whose ranks share a node (tsr_comm_node_of()) are. */
bool tsr_comm_has_direct_nodes(const tsr_comm *comm);

/** True if the engine leaves work to streams: it can wait for one. */
bool tsr_comm_has_streams(const tsr_comm *comm);

/** Collectives that an engine may have of its own. */
typedef enum tsr_native {
    TSR_NATIVE_NONE,
    TSR_NATIVE_ALL_GATHER,
    TSR_NATIVE_REDUCE_SCATTER,
    TSR_NATIVE_ALL_REDUCE,
    TSR_NATIVE_BROADCAST
} tsr_native;

/** True if this is a message engine that has the collective of its own, for this dtype and op where it reduces, or where reductions go by
 * nodes (collectives/hierarchy.h), in whatever order; not where a step of that would round more than a reduction in one go. In the first
 * case all groups of the communicator have it too. */
bool tsr_comm_has_native(const tsr_comm *comm, tsr_native kind, tsr_dtype dtype, tsr_reduce_op op);

/** True if it has any of them, for any values. */
bool tsr_comm_has_natives(const tsr_comm *comm);

/** True if this collective goes by nodes: groups of the communicator may have no nodes, or be direct. */
bool tsr_native_goes_by_nodes(const tsr_comm *comm, tsr_native kind);

#endif
