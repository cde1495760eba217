/** The host's operation tables. */
#ifndef TSR_DEVICE_HOST_HOST_H
#define TSR_DEVICE_HOST_HOST_H

#include <tessera/sys/device.h>

/** One table for each set of instructions that the build has kernels for (kernels.h). */
extern const tsr_device_table tsr_host_table_portable, tsr_host_table_avx2, tsr_host_table_avx512;

/** The table with the kernels named `kernels`, which may be any text; if the build lacks them, the
 * table with the portable kernels. */
const tsr_device_table *tsr_host_table_for(const char *kernels);

#endif
