/** The worker of TVM's Disco that the calling thread is. Disco has no C interface for it: this is
 * what `class DiscoWorker` of TVM 0.27 begins with. */
#ifndef TSR_HOSTS_TVM_DISCO_WORKER_H
#define TSR_HOSTS_TVM_DISCO_WORKER_H

#include "hosts/tvm/call.h"

typedef struct tsr_disco_worker {
    int32_t id, local_id, workers, groups;
    DLDevice device;
    TVMFFIAny ccl; /**< a String: the name of the collective library */
} tsr_disco_worker;

/** The calling thread's worker. TSR_ERROR_UNSUPPORTED: TVM lays workers out in another way; the
 * call's raised error: this thread is not a worker. */
tsr_status tsr_disco_worker_here(tsr_tvm_call *call, tsr_disco_worker **out);

/** Makes "tessera" the worker's collective library. */
void tsr_disco_worker_choose(tsr_disco_worker *worker);

#endif
