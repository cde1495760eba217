/** Ops that read or add elements of a table at positions that ids name. */
#ifndef TSR_DEVICE_CUDA_OPS_INDEXING_H
#define TSR_DEVICE_CUDA_OPS_INDEXING_H

#include "device/cuda/gpu.h"

struct tsr_kernel_call;

/** True if the op of a call indexes a table. */
bool tsr_cuda_indexes(const struct tsr_kernel_call *call);

/** Bytes of workspace that such a call wants; -1: there is no kernel for it. */
int64_t tsr_cuda_indexing_bytes(const struct tsr_kernel_call *call);

/** Enqueues such a call. The thread's device is `index`. Ids that are out of range are read and
 * added as those of other ranks, and tsr_cuda_faults_report() tells of the first. */
tsr_status tsr_cuda_index_table(tsr_cuda *cuda, int index, const struct tsr_kernel_call *call, tsr_stream stream);

#endif
