/** The gradients of the op experts, for which hidden values are made again. */
#ifndef TSR_OPS_KERNELS_MIXTURE_EXPERTS_GRADIENT_H
#define TSR_OPS_KERNELS_MIXTURE_EXPERTS_GRADIENT_H

#include "ops/kernels/call.h"

/** Computes dx, dgate_up and ddown of dout (t, s, h), x, ids, gate_up and down. dx is added over
 * the slots of a token in their order. TSR_ERROR_ARGUMENT: as tsr_slots_sort(). */
tsr_status tsr_experts_gradient_run(const tsr_kernel_call *call);

/** The workspace of tsr_experts_gradient_run(). */
int64_t tsr_experts_gradient_bytes(const tsr_kernel_call *call);

#endif
