/** Public collectives, for calls that have entered already. */
#ifndef TSR_COMM_COLLECTIVES_COLLECTIVES_H
#define TSR_COMM_COLLECTIVES_COLLECTIVES_H

#include <tessera/comm.h>

/** tsr_comm_all_gather() and tsr_comm_broadcast() of host memory, within a call that has entered already: `bytes` of each rank become
 * `all`, and those of rank `root` everybody's `data`. */
tsr_status tsr_gather_bytes(tsr_comm *comm, const void *mine, void *all, size_t bytes);
tsr_status tsr_broadcast_bytes(tsr_comm *comm, void *data, size_t bytes, int root);

#endif
