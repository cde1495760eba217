/** Memory of a device: entries of the operation table; `self` is a tsr_cuda. */
#ifndef TSR_DEVICE_CUDA_DEVICE_MEMORY_H
#define TSR_DEVICE_CUDA_DEVICE_MEMORY_H

#include <tessera/sys/device.h>

tsr_status tsr_cuda_alloc(void *self, int index, size_t bytes, tsr_stream stream, void **out);
void tsr_cuda_free(void *self, int index, void *memory, size_t bytes, tsr_stream stream);
tsr_status tsr_cuda_copy(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                         tsr_stream stream);

#endif
