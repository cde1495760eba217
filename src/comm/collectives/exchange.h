/** Exchanges of messages, for use within a call that has entered its handle already
 * (core/entry.h). */
#ifndef TSR_COMM_COLLECTIVES_EXCHANGE_H
#define TSR_COMM_COLLECTIVES_EXCHANGE_H

#include "comm/core/object.h"

/** tsr_comm_exchange_start() and tsr_comm_exchange_finish(), which do not enter the handle. `given`
 * has all fields but `call`, and is copied. */
tsr_status tsr_exchange_start(tsr_comm *comm, const tsr_exchange *given);
tsr_status tsr_exchange_finish(tsr_comm *comm);

#endif
