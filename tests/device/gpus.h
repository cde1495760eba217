/** The GPUs of a test, emulated ones where the program is linked with them. */
#ifndef TESTS_DEVICE_GPUS_H
#define TESTS_DEVICE_GPUS_H

#include <tessera/sys/device.h>

typedef struct gpus {
    tsr_device_driver *driver; /**< NULL after a test that was skipped */
    int count;                 /**< over which ranks may be spread: the first two if they reach each other both ways, else one */
} gpus;

/** Makes the driver, which the caller destroys; skips the running test where there is no GPU. */
void gpus_open(gpus *out);

#endif
