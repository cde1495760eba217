/** Properties of a communicator. No function here communicates; but for tsr_comm_shares(), the
 * results never change and are the same on all ranks. */
#ifndef TSR_COMM_CORE_TRAITS_H
#define TSR_COMM_CORE_TRAITS_H

#include <tessera/comm.h>

#include <stdbool.h>

/** True if ranks can read, in place, the memory of peers that the engine shares. */
bool tsr_comm_is_direct(const tsr_comm *comm);

/** True if all memory of all ranks can be read in place, whatever allocated it. */
bool tsr_comm_shares_all(const tsr_comm *comm);

/** True if ranks share only memory that the engine allocated: with all ranks in a direct engine,
 * with the ranks of their node in others. */
bool tsr_comm_shares_some(const tsr_comm *comm);

/** True if peers can read these bytes of this rank's memory in place. Direct communicators only. */
bool tsr_comm_shares(const tsr_comm *comm, const void *memory, size_t bytes);

/** False if the communicator is lent: then its only group is that of all ranks. */
bool tsr_comm_can_split(const tsr_comm *comm);

/** False if the engine sets TSR_COMM_UNCHECKED: executions over it and its groups compare
 * nothing. */
bool tsr_comm_is_checked(const tsr_comm *comm);

/** True if the communicator is not direct but may be split, and groups of ranks of one node
 * (tsr_comm_node_of()) are direct. */
bool tsr_comm_has_direct_nodes(const tsr_comm *comm);

/** True if the engine takes messages in two halves, between which they travel; never in direct
 * engines. */
bool tsr_comm_overlaps(const tsr_comm *comm);

/** True if the engine can wait for a stream: calls may leave work on it. */
bool tsr_comm_has_streams(const tsr_comm *comm);

/** Collectives that an engine may implement itself. */
typedef enum tsr_native {
    TSR_NATIVE_NONE,
    TSR_NATIVE_ALL_GATHER,
    TSR_NATIVE_REDUCE_SCATTER,
    TSR_NATIVE_ALL_REDUCE,
    TSR_NATIVE_BROADCAST
} tsr_native;

/** True if this is a message engine and the collective is either in its table, for this dtype and
 * op if it reduces, or a reduction that goes by nodes (collectives/hierarchy.h), in whatever order.
 * Narrow floats do not go by nodes where that would round more often than a reduction in one go. If
 * the collective is in the table, all groups of the communicator have it too. */
bool tsr_comm_has_native(const tsr_comm *comm, tsr_native kind, tsr_dtype dtype, tsr_reduce_op op);

/** True if tsr_comm_has_native() may be true for some collective, dtype and op. */
bool tsr_comm_has_natives(const tsr_comm *comm);

/** True if this collective goes by nodes. That of a group may not: the group may lie on one node,
 * or be direct. */
bool tsr_native_goes_by_nodes(const tsr_comm *comm, tsr_native kind);

#endif
