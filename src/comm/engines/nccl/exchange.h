/** The entries of tsr_comm_messages. */
#ifndef TSR_COMM_ENGINES_NCCL_EXCHANGE_H
#define TSR_COMM_ENGINES_NCCL_EXCHANGE_H

#include <tessera/sys/comm.h>

tsr_status tsr_nccl_exchange_all(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                 size_t receive_count, tsr_device device, tsr_stream stream);
tsr_status tsr_nccl_exchange_start(void *self, const tsr_message *sends, size_t send_count, const tsr_message *receives,
                                   size_t receive_count, tsr_device device, tsr_stream stream);
tsr_status tsr_nccl_exchange_finish(void *self);
tsr_status tsr_nccl_barrier(void *self);

#endif
