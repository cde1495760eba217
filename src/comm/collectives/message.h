/** Collectives by messages: each carries out a call on which all ranks have agreed. */
#ifndef TSR_COMM_COLLECTIVES_MESSAGE_H
#define TSR_COMM_COLLECTIVES_MESSAGE_H

#include "comm/collectives/collective.h"

tsr_status tsr_message_all_gather(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_message_reduce_scatter(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_message_all_reduce(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_message_all_to_all(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_message_broadcast(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_message_scatter(tsr_comm *comm, const tsr_collective *call);
tsr_status tsr_message_gather(tsr_comm *comm, const tsr_collective *call);

#endif
