/** Keeps the kernels of a family in order: each runs after the one before it, and is in its stream
 * before the next is begun. */
#ifndef TSR_COMM_ENGINES_NCCL_KERNEL_H
#define TSR_COMM_ENGINES_NCCL_KERNEL_H

#include "comm/engines/nccl/handle.h"

/** tsr_nccl_open() for a call that puts a kernel into `stream`, which then runs after the family's
 * earlier ones. */
tsr_status tsr_nccl_open_kernel(tsr_nccl_handle *handle, cudaStream_t stream, int *previous_device);

/** To be called after that call and tsr_nccl_close(), with the call's `result` and name: waits
 * until the kernel is in the stream. A failure breaks the handle. */
tsr_status tsr_nccl_conclude(tsr_nccl_handle *handle, ncclResult_t result, const char *call, cudaStream_t stream);

/** tsr_nccl_conclude() in two halves, for a kernel in the family's stream. Later does not wait. Now
 * waits; the family's next kernel calls it before it begins. */
void tsr_nccl_conclude_later(tsr_nccl_handle *handle);
tsr_status tsr_nccl_conclude_now(tsr_nccl_family *family);

/** tsr_nccl_conclude_now() if the kernel is one of this handle, else nothing. */
tsr_status tsr_nccl_conclude_own(tsr_nccl_handle *handle);

#endif
