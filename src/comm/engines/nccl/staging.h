/** Staging of host memory: NCCL takes only memory that the GPU reaches, so calls copy other host
 * memory through pinned memory. */
#ifndef TSR_COMM_ENGINES_NCCL_STAGING_H
#define TSR_COMM_ENGINES_NCCL_STAGING_H

#include "comm/engines/nccl/handle.h"

/** Bytes that a handle of a communicator of `ranks` ranks stages at once, and bytes of one part:
 * one part to and one from every peer fit. The same on all ranks. */
size_t tsr_nccl_staging_bytes(int ranks);
size_t tsr_nccl_part_bytes(int ranks);

/** Makes handle->staging at least `bytes` bytes large; its content is lost. */
tsr_status tsr_nccl_reserve(tsr_nccl_handle *handle, size_t bytes);

/** Under the lock: gives the handle's staging memory back to the family. */
void tsr_nccl_give_back(tsr_nccl_handle *handle);

/** `*staged`: whether memory on `device` is staged: host memory is, that of the family's device is
 * not. TSR_ERROR_UNSUPPORTED: the memory is elsewhere. */
tsr_status tsr_nccl_place(const tsr_nccl_handle *handle, tsr_device device, bool *staged);

#endif
