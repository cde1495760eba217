/** A device's table for callers with host memory, so that the conformance tests run over any
 * device. */
#ifndef TESTS_DEVICE_STAGED_H
#define TESTS_DEVICE_STAGED_H

#include <tessera/sys/device.h>

/**
 * The table of device 0 of `driver`, for host memory: what a call reads and writes is copied to the
 * device, with its alignment kept and guards around it, and copied back after the call. A write
 * outside the boxes of a call fails the test. `self` is NULL, so there is one such table at a time.
 */
const tsr_device_table *staged_table(const tsr_device_driver *driver);

#endif
