/** The device that tessera-conformance tests, and the parts of the suite that are about memory,
 * streams and whole moves. */
#ifndef TESTS_CONFORMANCE_DEVICES_H
#define TESTS_CONFORMANCE_DEVICES_H

#include "device_parts.h"

#include <tessera/sys/device.h>

/** All parts of the suite of devices. */
extern const device_part devices_parts[];

/** Sets the device under test. `name` is for sentences, and `driver` must outlive the tests. */
void devices_use(const char *name, const tsr_device_driver *driver);

/** The device under test: its driver, and its table with the argument of its entries. */
const tsr_device_driver *devices_driver(void);
const tsr_device_table *devices_table(void **self);

/** How many of the devices are tested: 2 if there are as many and each reaches the other, else
 * 1. */
int devices_count(void);

/** Each runs the tests of one file. */
int devices_memory(void);
int devices_streams(void);
int devices_moves(void);
int devices_products(void);

#endif
