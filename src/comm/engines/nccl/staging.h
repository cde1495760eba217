/** Host memory, which NCCL does not take unless the GPU reaches it: calls go by way of memory that it does. */
#ifndef TSR_COMM_ENGINES_NCCL_STAGING_H
#define TSR_COMM_ENGINES_NCCL_STAGING_H

#include "comm/engines/nccl/handle.h"

/** Bytes that a handle of a communicator of `ranks` ranks stages at once: one message to and from every peer, of so many bytes each. The
 * same on all ranks. */
size_t tsr_nccl_staging_bytes(int ranks);
size_t tsr_nccl_part_bytes(int ranks);

/** Room for `bytes` in handle->staging; what was there is gone. */
tsr_status tsr_nccl_reserve(tsr_nccl_handle *handle, size_t bytes);

/** Under the lock: the handle's memory becomes the family's. */
void tsr_nccl_give_back(tsr_nccl_handle *handle);

/** Whether memory of `device` is staged: host memory is, that of the family's device is not. TSR_ERROR_UNSUPPORTED: other memory. */
tsr_status tsr_nccl_place(const tsr_nccl_handle *handle, tsr_device device, bool *staged);

#endif
