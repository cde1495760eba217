/** Collectives of Disco's workers. Tensors are dense, in host memory; the arguments are those of
 * Disco's functions of the same names. */
#ifndef TSR_HOSTS_TVM_DISCO_COLLECTIVES_H
#define TSR_HOSTS_TVM_DISCO_COLLECTIVES_H

#include "hosts/tvm/call.h"

/** allreduce(send, kind, in_group, receive); kinds are sum, prod, min, max, avg from 0. */
tsr_status tsr_disco_allreduce(tsr_tvm_call *call);

/** allgather(send, in_group, receive) */
tsr_status tsr_disco_allgather(tsr_tvm_call *call);

/** broadcast_from_worker0(send, in_group, receive) */
tsr_status tsr_disco_broadcast(tsr_tvm_call *call);

/** scatter_from_worker0(send, in_group, receive) */
tsr_status tsr_disco_scatter(tsr_tvm_call *call);

/** gather_to_worker0(send, in_group, receive) */
tsr_status tsr_disco_gather(tsr_tvm_call *call);

/** recv_from_worker0(buffer), for which worker 0 calls send_to_worker() */
tsr_status tsr_disco_receive_from_first(tsr_tvm_call *call);

/** send_to_next_group(buffer): to the worker at this one's place of the next group */
tsr_status tsr_disco_send_to_next_group(tsr_tvm_call *call);

/** recv_from_prev_group(buffer) */
tsr_status tsr_disco_receive_from_previous_group(tsr_tvm_call *call);

/** send_to_worker(buffer, worker) */
tsr_status tsr_disco_send(tsr_tvm_call *call);

/** recv_from_worker(buffer, worker) */
tsr_status tsr_disco_receive(tsr_tvm_call *call);

/** sync_worker(): calls are done when they return */
tsr_status tsr_disco_sync(tsr_tvm_call *call);

#endif
