/** How handles come and go. */
#ifndef TSR_COMM_ENGINES_NCCL_LIFE_H
#define TSR_COMM_ENGINES_NCCL_LIFE_H

#include "comm/engines/nccl/handle.h"

/** A handle in the family, with everything but its communicator, which will have `ranks` ranks at most. A family whose first one fails is
 * gone. */
tsr_status tsr_nccl_handle_create(tsr_nccl_family *family, int ranks, tsr_nccl_handle **out);

/** This rank's return: what it has started is dropped. */
void tsr_nccl_handle_destroy(tsr_nccl_handle *handle);

#endif
