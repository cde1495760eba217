/** The order of a family's kernels: each follows the one before it, and is in its stream before the next is begun. */
#ifndef TSR_COMM_ENGINES_NCCL_KERNEL_H
#define TSR_COMM_ENGINES_NCCL_KERNEL_H

#include "comm/engines/nccl/handle.h"

/** tsr_nccl_open() for a call that puts a kernel into `stream`, which then runs after the family's earlier ones. */
tsr_status tsr_nccl_open_kernel(tsr_nccl_handle *handle, cudaStream_t stream, int *previous_device);

/** What came of such a call, the `result` of `call`, after closing: waits until the kernel is in the stream. A failure breaks the handle.
 */
tsr_status tsr_nccl_conclude(tsr_nccl_handle *handle, ncclResult_t result, const char *call, cudaStream_t stream);

/** The same for later: the kernel is in the family's stream before anything else is done in the family, or when this is called. */
void tsr_nccl_conclude_later(tsr_nccl_handle *handle);
tsr_status tsr_nccl_conclude_now(tsr_nccl_family *family);

/** That of this handle alone. */
tsr_status tsr_nccl_conclude_own(tsr_nccl_handle *handle);

#endif
