/** The host's memory: entries that all of its operation tables share. */
#ifndef TSR_DEVICE_HOST_MEMORY_H
#define TSR_DEVICE_HOST_MEMORY_H

#include <tessera/sys/device.h>

/** Entries of the operation table that need no kernels. */
tsr_status tsr_host_count(void *self, int *count, const char **reason);
tsr_status tsr_host_alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out);
void tsr_host_free(void *self, int index, void *memory, size_t bytes, tsr_stream stream);

#endif
