/** Kernels of ops on devices. */
#ifndef TSR_OPS_EAGER_LAUNCH_H
#define TSR_OPS_EAGER_LAUNCH_H

#include "ops/rows/row.h"

/** Refuses an op on a device, by the names of both. */
tsr_status tsr_eager_refuse_device(const tsr_op_case *c, tsr_device device);

/** Enqueues a call on the device's default stream; its tensors lie on `device`, and it need not
 * exchange. TSR_ERROR_UNSUPPORTED: the device has no kernel for it. */
tsr_status tsr_eager_launch(const tsr_op_case *c, tsr_device device, const tsr_kernel_call *call);

#endif
