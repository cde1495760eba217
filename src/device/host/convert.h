/** Conversions between floating types. */
#ifndef TSR_DEVICE_HOST_CONVERT_H
#define TSR_DEVICE_HOST_CONVERT_H

#include "device/host/kernels.h"

/** The entry `convert` of the operation table. */
tsr_status KERNEL(host_convert)(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                                tsr_dtype src_dtype, int64_t count, tsr_stream stream);

#endif
