/** The host as a device: what its operation tables share, and where they are. */
#ifndef TSR_DEVICE_HOST_HOST_H
#define TSR_DEVICE_HOST_HOST_H

#include <tessera/sys/device.h>

/** One table for each set of instructions that this build has kernels for (kernels.h). */
extern const tsr_device_table tsr_host_table_portable, tsr_host_table_avx2, tsr_host_table_avx512;

/** The table with kernels of that name, which may be anything; the portable ones stand in for those that this build lacks. */
const tsr_device_table *tsr_host_table_for(const char *kernels);

#endif
