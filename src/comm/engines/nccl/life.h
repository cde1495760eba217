/** Makes and destroys handles. */
#ifndef TSR_COMM_ENGINES_NCCL_LIFE_H
#define TSR_COMM_ENGINES_NCCL_LIFE_H

#include "comm/engines/nccl/handle.h"

/** Makes a handle in the family, with everything but its communicator, which will have at most
 * `ranks` ranks. If a family's first handle cannot be made the family is freed. */
tsr_status tsr_nccl_handle_create(tsr_nccl_family *family, int ranks, tsr_nccl_handle **out);

/** This rank's return. An exchange that it has started is dropped. */
void tsr_nccl_handle_destroy(tsr_nccl_handle *handle);

#endif
