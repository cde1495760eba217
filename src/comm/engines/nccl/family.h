/** A family and its lock: see handle.h. */
#ifndef TSR_COMM_ENGINES_NCCL_FAMILY_H
#define TSR_COMM_ENGINES_NCCL_FAMILY_H

#include "comm/engines/nccl/handle.h"

/** A family without handles, of this thread's rank on `device`. The last handle that goes takes it along. */
tsr_status tsr_nccl_family_create(const tsr_nccl_api *api, tsr_context *context, const tsr_device_driver *driver, int device,
                                  int64_t timeout_ms, tsr_nccl_family **out);

/** Frees a family that has no handles. */
void tsr_nccl_family_free(tsr_nccl_family *family);

/** From any thread, more than once. */
void tsr_nccl_family_abort(tsr_nccl_family *family);

/** The lock; whoever lets it go aborts what was to be aborted meanwhile. */
void tsr_nccl_lock(tsr_nccl_family *family);
void tsr_nccl_unlock(tsr_nccl_family *family);

/** Under the lock: makes the family's device current. */
tsr_status tsr_nccl_switch(const tsr_nccl_family *family, int *previous_device);

/** Under the lock: aborts the handle's communicator if we made it. */
void tsr_nccl_handle_abort(tsr_nccl_handle *handle);

#endif
