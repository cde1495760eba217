/** Makes Disco's workers find this library under the name "tessera". */
#ifndef TSR_HOSTS_TVM_DISCO_REGISTER_H
#define TSR_HOSTS_TVM_DISCO_REGISTER_H

#include "hosts/tvm/call.h"

/** register_ccl(): registers the functions `runtime.disco.tessera.*`, which the host keeps until the
 * process ends. A second call does no harm. */
tsr_status tsr_tvm_register_ccl(tsr_tvm_call *call);

#endif
