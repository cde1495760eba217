/** Waits with a timeout, which also poll for asynchronous errors of NCCL. */
#ifndef TSR_COMM_ENGINES_NCCL_WAIT_H
#define TSR_COMM_ENGINES_NCCL_WAIT_H

#include "comm/engines/nccl/handle.h"

/** Waits until NCCL's background has done its work, so that the communicator may be called again. A
 * failure breaks the handle. */
tsr_status tsr_nccl_settle(tsr_nccl_handle *handle);

/** Waits until all work in `stream` is done, for `timeout_ms` at most; 0: for ever. A failure
 * breaks the handle. */
tsr_status tsr_nccl_drain(tsr_nccl_handle *handle, cudaStream_t stream, int64_t timeout_ms);

#endif
