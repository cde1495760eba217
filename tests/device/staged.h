/** A device's table for callers that have host memory: the conformance tests then run over any device. */
#ifndef TESTS_DEVICE_STAGED_H
#define TESTS_DEVICE_STAGED_H

#include <tessera/sys/device.h>

/**
 * The table of `driver`, device 0, in which all memory is the host's: what a call reads and writes is copied to the device, aligned as it
 * was, with guards around it, and back when the call is done. Anything written beyond the box that a call names fails the test. Uses NULL
 * as `self`, so there is one at a time.
 */
const tsr_device_table *staged_table(const tsr_device_driver *driver);

#endif
