/** Collectives of bytes, for use within a call that has entered its handle already
 * (core/entry.h). */
#ifndef TSR_COMM_COLLECTIVES_COLLECTIVES_H
#define TSR_COMM_COLLECTIVES_COLLECTIVES_H

#include <tessera/comm.h>

/** tsr_comm_all_gather() and tsr_comm_broadcast() of host memory, which do not enter the handle.
 * Gather: the `bytes` bytes at `mine` on rank r become element r of `all`, on every rank.
 * Broadcast: the `bytes` bytes at `data` on rank `root` go to `data` on every rank. */
tsr_status tsr_gather_bytes(tsr_comm *comm, const void *mine, void *all, size_t bytes);
tsr_status tsr_broadcast_bytes(tsr_comm *comm, void *data, size_t bytes, int root);

#endif
