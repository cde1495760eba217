/* A libtessera-cuda whose GPUs and NCCL are the stand-in of tests/comm, with which a test program
 * links to begin and end its world. */
#include "comm/engines/nccl/engine.h"
#include "standin.h"

#include <tessera/cuda.h>
#include <tessera/nccl.h>

tsr_status tsr_cuda_driver_create(tsr_context *context, const tsr_cuda_options *options, tsr_device_driver **out)
{
    (void)context;
    (void)options;
    return standin_driver_create(out);
}

tsr_status tsr_comm_from_nccl(struct ncclComm *comm, const tsr_nccl_options *options, tsr_comm **out)
{
    return tsr_nccl_borrow(&standin_api, comm, options, out);
}
