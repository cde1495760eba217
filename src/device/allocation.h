/** Memory on a device: the host's comes from the context's allocator, any other's from its driver. */
#ifndef TSR_DEVICE_ALLOCATION_H
#define TSR_DEVICE_ALLOCATION_H

#include "base/memory/memory.h"
#include "device/device.h"

/** 0 bytes give NULL. */
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

/** NULL is fine. */
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
