/** Reductions of boxes. */
#ifndef TSR_DEVICE_HOST_REDUCE_H
#define TSR_DEVICE_HOST_REDUCE_H

#include "device/host/kernels.h"

/** The entry `reduce` of the operation table. */
tsr_status KERNEL(host_reduce)(void *self, int index, const tsr_box_reduce *reduce, tsr_stream stream);

#endif
