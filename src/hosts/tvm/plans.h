/** The module's functions of plans, which are host arithmetic. */
#ifndef TSR_HOSTS_TVM_PLANS_H
#define TSR_HOSTS_TVM_PLANS_H

#include "hosts/tvm/call.h"

/** plan(source, destination, rank) -> tessera.Plan */
tsr_status tsr_tvm_plan(tsr_tvm_call *call);

/** save_plan(plan) -> bytes */
tsr_status tsr_tvm_save_plan(tsr_tvm_call *call);

/** load_plan(bytes, rank) -> tessera.Plan */
tsr_status tsr_tvm_load_plan(tsr_tvm_call *call);

/** plan_bytes(plan) -> Shape: bytes received and sent by the plan's rank */
tsr_status tsr_tvm_plan_bytes(tsr_tvm_call *call);

/** plan_messages(plan) -> Shape: messages received and sent by the plan's rank */
tsr_status tsr_tvm_plan_messages(tsr_tvm_call *call);

/** plan_workspace(plan) -> int */
tsr_status tsr_tvm_plan_workspace(tsr_tvm_call *call);

/** describe_plan(plan) -> str */
tsr_status tsr_tvm_describe_plan(tsr_tvm_call *call);

#endif
