/** Collectives by messages. */
#ifndef TSR_COMM_COLLECTIVES_MESSAGE_H
#define TSR_COMM_COLLECTIVES_MESSAGE_H

#include "comm/collectives/collective.h"

/** Carries out a call on which all ranks have agreed. */
tsr_status tsr_message_carry_out(tsr_comm *comm, const tsr_collective *call);

#endif
