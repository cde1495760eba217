/** A driver: an operation table and what it works on. */
#ifndef TSR_DEVICE_DRIVER_H
#define TSR_DEVICE_DRIVER_H

#include <stdbool.h>
#include <tessera/sys/device.h>

struct tsr_device_driver {
    tsr_device_table table; /**< a copy: complete, as tsr_device_driver_create() checks */
    void *self;             /**< the table's own: it frees it, or the caller does */
};

#endif
