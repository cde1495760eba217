/** Converts elements of tensors with any strides. */
#ifndef TSR_TENSOR_SYNC_SYNC_CONVERT_H
#define TSR_TENSOR_SYNC_SYNC_CONVERT_H

#include "device/device.h"

/** Converts the elements of `from` to those of `to`, of the same shape and another floating dtype,
 * in the order of `stream`; both are on the device of `ops` and do not overlap. Each part that has
 * no gaps on either side takes a call of the device. Allocates nothing. */
tsr_status tsr_sync_convert(const tsr_device_ops *ops, const tsr_tensor *from, const tsr_tensor *to, tsr_stream stream);

#endif
