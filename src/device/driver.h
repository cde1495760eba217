/** A driver: an operation table and what it works on. */
#ifndef TSR_DEVICE_DRIVER_H
#define TSR_DEVICE_DRIVER_H

#include "base/references.h"
#include <stdbool.h>
#include <tessera/sys/device.h>

struct tsr_device_driver {
    tsr_device_table table;    /**< a copy: complete, as tsr_device_driver_create() checks */
    void *self;                /**< the table's own: it frees it, or the caller does */
    uint64_t kind;             /**< of the table's name and functions: equal for drivers of one kind of device, and never 0, the host's */
    tsr_references references; /**< the caller's, and of those who have work or events on its devices */
};

/** One reference more, and one back; NULL is fine. Any thread. */
const tsr_device_driver *tsr_device_driver_retain(const tsr_device_driver *driver);
void tsr_device_driver_release(const tsr_device_driver *driver);

static inline uint64_t tsr_device_kind(tsr_device device)
{
    return device.driver ? device.driver->kind : 0;
}

#endif
