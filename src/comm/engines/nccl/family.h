/** A family and its lock: see handle.h. */
#ifndef TSR_COMM_ENGINES_NCCL_FAMILY_H
#define TSR_COMM_ENGINES_NCCL_FAMILY_H

#include "comm/engines/nccl/handle.h"

/** Makes a family without handles on `device`. It is freed with its last handle. */
tsr_status tsr_nccl_family_create(const tsr_nccl_api *api, tsr_context *context, const tsr_device_driver *driver,
                                  int device, int64_t timeout_ms, tsr_nccl_family **out);

/** Frees a family that has no handles. */
void tsr_nccl_family_free(tsr_nccl_family *family);

/** Aborts all communicators of the family that were made here. Any thread, more than once. If the
 * lock is taken, the thread that holds it aborts them when it unlocks. */
void tsr_nccl_family_abort(tsr_nccl_family *family);

/** The family's lock. Unlock also carries out an abort that another thread has asked for
 * meanwhile. */
void tsr_nccl_lock(tsr_nccl_family *family);
void tsr_nccl_unlock(tsr_nccl_family *family);

/** Under the lock: makes the family's device current; `*previous_device` is the one that was. */
tsr_status tsr_nccl_switch(const tsr_nccl_family *family, int *previous_device);

/** Under the lock: aborts the handle's communicators if they were made here. */
void tsr_nccl_handle_abort(tsr_nccl_handle *handle);

#endif
