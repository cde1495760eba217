/** Calls in which ranks write and read one another's memory. */
#ifndef TSR_TENSOR_EXPERTS_EXPERTS_DIRECT_H
#define TSR_TENSOR_EXPERTS_EXPERTS_DIRECT_H

#include "tensor/experts/expert_call.h"

/** Runs a call whose checks gave `local`. */
tsr_status tsr_experts_run_directly(const tsr_expert_call *call, tsr_status local);

#endif
