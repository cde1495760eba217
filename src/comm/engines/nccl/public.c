#include "comm/engines/nccl/engine.h"

#include <tessera/nccl.h>

tsr_status tsr_comm_from_nccl(struct ncclComm *comm, const tsr_nccl_options *options, tsr_comm **out)
{
    return tsr_nccl_borrow(&tsr_nccl_library, comm, options, out);
}

tsr_status tsr_nccl_id_create(tsr_nccl_id *out)
{
    return tsr_nccl_make_id(&tsr_nccl_library, out);
}

tsr_status tsr_comm_create_nccl(int nranks, int rank, const tsr_nccl_id *id, const tsr_nccl_options *options,
                                tsr_comm **out)
{
    return tsr_nccl_create(&tsr_nccl_library, nranks, rank, id, options, out);
}
