/** Gives handles their NCCL communicators. */
#ifndef TSR_COMM_ENGINES_NCCL_SPLIT_H
#define TSR_COMM_ENGINES_NCCL_SPLIT_H

#include "comm/engines/nccl/handle.h"

/** Gives the handle a communicator that the caller has made and that is ready. It stays the
 * caller's. */
tsr_status tsr_nccl_adopt(tsr_nccl_handle *handle, ncclComm_t comm);

/** Collective: makes one communicator of all ranks that bring the same id. */
tsr_status tsr_nccl_init(tsr_nccl_handle *handle, int ranks, int rank, const tsr_nccl_id *id);

/** tsr_comm_table.split. */
tsr_status tsr_nccl_split(void *self, int color, int key, void **out);

#endif
