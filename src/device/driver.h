/** A driver: an operation table and its self. */
#ifndef TSR_DEVICE_DRIVER_H
#define TSR_DEVICE_DRIVER_H

#include "base/references.h"

#include <tessera/sys/device.h>

struct tsr_device_driver {
    tsr_device_table table; /**< a copy, checked by tsr_device_driver_create() */
    void *self;             /**< passed to every entry; freed by the table's `destroy`, or by the caller */
    /** a hash of name and functions, equal for drivers of one kind; never 0, the host's kind */
    uint64_t kind;
    tsr_references references; /**< the caller's, and one for each object with work or events on its devices */
};

/** Adds a reference and returns `driver`; NULL is fine. Any thread. */
const tsr_device_driver *tsr_device_driver_retain(const tsr_device_driver *driver);

/** Drops a reference; NULL is fine. Any thread. */
void tsr_device_driver_release(const tsr_device_driver *driver);

/** The kind of a device's driver; 0: the host. */
static inline uint64_t tsr_device_kind(tsr_device device)
{
    return device.driver ? device.driver->kind : 0;
}

#endif
