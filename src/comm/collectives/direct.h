/** Collectives in which ranks read one another's memory: each carries out a call on which all ranks
 * have agreed. */
#ifndef TSR_COMM_COLLECTIVES_DIRECT_H
#define TSR_COMM_COLLECTIVES_DIRECT_H

#include "comm/collectives/collective.h"

tsr_status tsr_direct_all_gather(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_direct_reduce_scatter(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_direct_all_reduce(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_direct_all_to_all(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_direct_broadcast(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_direct_scatter(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_direct_gather(tsr_comm *comm, const tsr_collective *call);

/** Checks, in a direct all-to-all, that every part sent to this rank is as long as this rank
 * expects. A mismatch is for tsr_call_end_shared(): all ranks return its sentence. */
tsr_status tsr_direct_match(tsr_comm *comm, const tsr_collective *call);

#endif
