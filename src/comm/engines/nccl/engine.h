/** The engine over any table of functions; the functions of <tessera/nccl.h> use it with the table
 * of the real ones. */
#ifndef TSR_COMM_ENGINES_NCCL_ENGINE_H
#define TSR_COMM_ENGINES_NCCL_ENGINE_H

#include "comm/engines/nccl/api.h"

#include <tessera/nccl.h>

/** tsr_comm_from_nccl(), tsr_comm_create_nccl() and tsr_nccl_id_create(). */
tsr_status tsr_nccl_borrow(const tsr_nccl_api *api, ncclComm_t comm, const tsr_nccl_options *options, tsr_comm **out);
tsr_status tsr_nccl_create(const tsr_nccl_api *api, int ranks, int rank, const tsr_nccl_id *id,
                           const tsr_nccl_options *options, tsr_comm **out);
tsr_status tsr_nccl_make_id(const tsr_nccl_api *api, tsr_nccl_id *out);

#endif
