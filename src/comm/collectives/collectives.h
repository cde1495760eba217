/** Collectives for use within a call that has entered its handle already (core/entry.h). */
#ifndef TSR_COMM_COLLECTIVES_COLLECTIVES_H
#define TSR_COMM_COLLECTIVES_COLLECTIVES_H

#include "comm/collectives/collective.h"

/** The rows of collectives that other public calls than tsr_comm_* make, too. */
extern const tsr_operation tsr_all_gather_operation, tsr_reduce_scatter_operation, tsr_all_reduce_operation,
    tsr_all_to_all_operation, tsr_broadcast_operation;

/** A call with the arguments that all collectives have; the caller adds the others. `caller` as in
 * tsr_collective. */
static inline tsr_collective tsr_collective_of(const char *caller, const tsr_operation *operation, const void *send,
                                               void *receive, int64_t count, tsr_dtype dtype, tsr_device device,
                                               tsr_stream stream)
{
    return (tsr_collective){.caller = caller,
                            .operation = operation,
                            .send = send,
                            .receive = receive,
                            .count = count,
                            .dtype = dtype,
                            .device = device,
                            .stream = stream};
}

/** Collective: makes the call, and does not enter the handle. */
tsr_status tsr_collective_run(tsr_comm *comm, tsr_collective *call);

/** tsr_comm_all_gather() and tsr_comm_broadcast() of host memory, which do not enter the handle.
 * Gather: the `bytes` bytes at `mine` on rank r become element r of `all`, on every rank.
 * Broadcast: the `bytes` bytes at `data` on rank `root` go to `data` on every rank. */
tsr_status tsr_gather_bytes(tsr_comm *comm, const void *mine, void *all, size_t bytes);
tsr_status tsr_broadcast_bytes(tsr_comm *comm, void *data, size_t bytes, int root);

#endif
