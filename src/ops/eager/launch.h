/** Kernels of ops on devices. */
#ifndef TSR_OPS_EAGER_LAUNCH_H
#define TSR_OPS_EAGER_LAUNCH_H

#include "ops/rows/row.h"

/** The name of a device's kind, as "cuda". */
const char *tsr_launch_name(tsr_device device);

/** "the host", or "device cuda:1", for sentences; returns `text`. */
const char *tsr_launch_print(tsr_device device, char *text, size_t capacity);

/** How a device computes a call. */
typedef enum tsr_launch_way {
    TSR_LAUNCH_KERNEL, /**< by the table's `launch` */
    TSR_LAUNCH_COPY,   /**< the result is strides over the first input, or that over the result */
    TSR_LAUNCH_GEMM    /**< by the table's `gemm` */
} tsr_launch_way;

/** A call as a device computes it. */
typedef struct tsr_launch {
    tsr_launch_way way;
    int64_t bytes; /**< of workspace on the device, aligned to 64 */
} tsr_launch;

/** Finds how a device computes a call, whose `op` is the row's name and which need not exchange. No
 * elements are read. TSR_ERROR_UNSUPPORTED, in a sentence that begins with `caller` and names op
 * and device: it has no kernel for it. */
tsr_status tsr_launch_find(const char *caller, const tsr_op *op, tsr_device device, const tsr_kernel_call *call,
                           tsr_launch *out);

/** Enqueues a call in the way that tsr_launch_find() found for it, with its workspace. */
tsr_status tsr_launch_enqueue(const tsr_op *op, tsr_launch_way way, tsr_device device, const tsr_kernel_call *call,
                              tsr_stream stream);

/** Enqueues a copy between tensors of one shape and dtype on a device. They are apart, or one. */
tsr_status tsr_launch_copy(const tsr_tensor *from, const tsr_tensor *to, tsr_device device, tsr_stream stream);

/** Enqueues a call on the device's default stream; its tensors lie on `device`, and it need not
 * exchange. TSR_ERROR_UNSUPPORTED: the device has no kernel for it. */
tsr_status tsr_eager_launch(const tsr_op_case *c, tsr_device device, const tsr_kernel_call *call);

#endif
