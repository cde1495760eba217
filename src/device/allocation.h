/** Memory on a device: host memory comes from the context's allocator, other memory from the
 * device's driver. */
#ifndef TSR_DEVICE_ALLOCATION_H
#define TSR_DEVICE_ALLOCATION_H

#include "base/memory/memory.h"
#include "device/device.h"

/** Allocates `bytes` without a stream; the caller releases `*out` by tsr_device_release(). For 0
 * bytes `*out` is NULL. */
static inline tsr_status tsr_device_allocate(tsr_context *context, tsr_device device, size_t bytes, void **out)
{
    if (bytes == 0) {
        *out = NULL;
        return TSR_OK;
    }
    if (!device.driver)
        return tsr_allocate_data(context, bytes, out);
    const tsr_device_ops ops = tsr_device_resolve(context, device);
    return ops.table->alloc(ops.self, ops.index, bytes, NULL, out);
}

/** Releases memory of tsr_device_allocate(), of `bytes` bytes; NULL is fine. */
static inline void tsr_device_release(tsr_context *context, tsr_device device, void *memory, size_t bytes)
{
    if (!device.driver) {
        tsr_release(context, memory);
    } else if (memory) {
        const tsr_device_ops ops = tsr_device_resolve(context, device);
        ops.table->free(ops.self, ops.index, memory, bytes, NULL);
    }
}

#endif
