/** How a session of Disco gets its communicators. */
#ifndef TSR_HOSTS_TVM_DISCO_SESSION_H
#define TSR_HOSTS_TVM_DISCO_SESSION_H

#include "hosts/tvm/call.h"

/** init_ccl(session, device_ids): for the controller; ids of devices are not looked at. Only
 * sessions of threads are possible. */
tsr_status tsr_disco_init_ccl(tsr_tvm_call *call);

/** init_ccl_per_worker(address): each worker takes its seat. */
tsr_status tsr_disco_init_worker(tsr_tvm_call *call);

#endif
