/** NCCL's collectives, of equal parts: the entries of tsr_comm_collectives. */
#ifndef TSR_COMM_ENGINES_NCCL_COLLECTIVES_H
#define TSR_COMM_ENGINES_NCCL_COLLECTIVES_H

#include <tessera/sys/comm.h>

tsr_status tsr_nccl_all_gather(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                               tsr_device device, tsr_stream stream);
tsr_status tsr_nccl_reduce_scatter(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                                   tsr_reduce_op op, tsr_device device, tsr_stream stream);
tsr_status tsr_nccl_all_reduce(void *self, const void *send, void *receive, int64_t count, tsr_dtype dtype,
                               tsr_reduce_op op, tsr_device device, tsr_stream stream);
tsr_status tsr_nccl_broadcast(void *self, void *buffer, int64_t count, tsr_dtype dtype, int root, tsr_device device,
                              tsr_stream stream);

#endif
