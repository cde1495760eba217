/** Calls in which rows travel as messages. */
#ifndef TSR_TENSOR_EXPERTS_EXPERTS_MESSAGE_H
#define TSR_TENSOR_EXPERTS_EXPERTS_MESSAGE_H

#include "tensor/experts/expert_call.h"

/** Runs a call whose checks gave `local`. */
tsr_status tsr_experts_run_by_messages(const tsr_expert_call *call, tsr_status local);

#endif
