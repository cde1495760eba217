/** The op experts: each slot of a token goes through a gated layer of the expert that it names. */
#ifndef TSR_OPS_KERNELS_MIXTURE_EXPERTS_H
#define TSR_OPS_KERNELS_MIXTURE_EXPERTS_H

#include "ops/kernels/call.h"

/** Computes y (t, s, h) of x (t, k), ids (t, s), gate_up (e, 2 i, k) and down (e, h, i). Slots
 * whose expert another rank has are -0. TSR_ERROR_ARGUMENT: as tsr_slots_sort(). */
tsr_status tsr_experts_run(const tsr_kernel_call *call);

/** The workspace of tsr_experts_run(). */
int64_t tsr_experts_bytes(const tsr_kernel_call *call);

#endif
