/** The public exchange, for calls that have entered already. */
#ifndef TSR_COMM_COLLECTIVES_EXCHANGE_H
#define TSR_COMM_COLLECTIVES_EXCHANGE_H

#include <tessera/comm.h>

/** tsr_comm_exchange_start() and tsr_comm_exchange_finish(), within calls that have entered already. */
tsr_status tsr_exchange_start(tsr_comm *comm, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                              size_t receive_count, tsr_device device, tsr_stream stream);
tsr_status tsr_exchange_finish(tsr_comm *comm);

#endif
