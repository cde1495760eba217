/** How handles come by their communicators. */
#ifndef TSR_COMM_ENGINES_NCCL_SPLIT_H
#define TSR_COMM_ENGINES_NCCL_SPLIT_H

#include "comm/engines/nccl/handle.h"

/** Gives the handle a communicator of somebody else's that is ready. */
tsr_status tsr_nccl_adopt(tsr_nccl_handle *handle, ncclComm_t comm);

/** Makes one of all who bring the same id. Collective. */
tsr_status tsr_nccl_init(tsr_nccl_handle *handle, int ranks, int rank, const tsr_nccl_id *id);

/** The entry `split` of the table. */
tsr_status tsr_nccl_split(void *self, int color, int key, void **out);

#endif
