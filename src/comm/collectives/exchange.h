/** The public exchange, for calls that have entered already. */
#ifndef TSR_COMM_COLLECTIVES_EXCHANGE_H
#define TSR_COMM_COLLECTIVES_EXCHANGE_H

#include "comm/core/object.h"

/** tsr_comm_exchange_start() and tsr_comm_exchange_finish(), within calls that have entered already. `given` has all but `call`, and is
 * copied. */
tsr_status tsr_exchange_start(tsr_comm *comm, const tsr_exchange *given);
tsr_status tsr_exchange_finish(tsr_comm *comm);

#endif
