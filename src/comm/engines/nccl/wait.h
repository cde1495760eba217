/** Waits that end: never longer than the timeout, and with an eye on what fails meanwhile. */
#ifndef TSR_COMM_ENGINES_NCCL_WAIT_H
#define TSR_COMM_ENGINES_NCCL_WAIT_H

#include "comm/engines/nccl/handle.h"

/** Waits until NCCL has done what it was given, so that the communicator may be called again. A failure breaks the handle. */
tsr_status tsr_nccl_settle(tsr_nccl_handle *handle);

/** Waits until what `stream` holds is done. A failure breaks the handle. `timeout_ms` 0: for ever. */
tsr_status tsr_nccl_drain(tsr_nccl_handle *handle, cudaStream_t stream, int64_t timeout_ms);

#endif
