#include "device/host/convert.h"
#include "device/host/copy.h"
#include "device/host/host.h"
#include "device/host/kernels.h"
#include "device/host/memory.h"
#include "device/host/reduce.h"

/* No GEMM: libtessera brings a BLAS. No streams: every call is done on return. */
const tsr_device_table KERNEL(host_table) = {
    .size = sizeof(tsr_device_table),
    .name = "host",
    .count = tsr_host_count,
    .alloc = tsr_host_alloc,
    .free = tsr_host_free,
    .copy = KERNEL(host_copy),
    .copy_boxes = KERNEL(host_copy_boxes),
    .fill = KERNEL(host_fill),
    .reduce = KERNEL(host_reduce),
    .convert = KERNEL(host_convert),
};
