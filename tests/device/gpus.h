/** The GPUs of a test; emulated ones if the program is linked with the emulation. */
#ifndef TESTS_DEVICE_GPUS_H
#define TESTS_DEVICE_GPUS_H

#include <tessera/sys/device.h>

typedef struct gpus {
    tsr_device_driver *driver; /**< NULL if the test was skipped */
    int count;                 /**< number of GPUs for ranks: 2 if the first two reach each other both ways, else 1 */
} gpus;

/** Makes the driver, which the caller destroys; skips the running test if there is no GPU. */
void gpus_open(gpus *out);

#endif
