/** What a sync keeps, for the files of src/tensor/sync. */
#ifndef TSR_TENSOR_SYNC_SYNC_STATE_H
#define TSR_TENSOR_SYNC_SYNC_STATE_H

#include "tensor/sync/sync_pairs.h"

#include <stdbool.h>

/** Memory of the sync's device; on the host, shared with other ranks if ranks share some. */
typedef struct tsr_sync_memory_block {
    void *data;
    size_t bytes;
    bool shared;
} tsr_sync_memory_block;

struct tsr_sync {
    tsr_context *context;
    tsr_comm *comm;    /**< kept by `keeper` */
    tsr_mesh *keeper;  /**< a mesh over all ranks of `comm` */
    tsr_device device; /**< its driver is retained */
    size_t count, source_count;
    tsr_sync_pair *pairs; /**< one for each destination; they hold references to their layouts */
    tsr_plan *plan;       /**< one move for each pair, in the pair's wire dtype */
    /** What the plan moves, sources and then destinations. A tensor that is converted on this rank
     * lies in `stage`; the others are the caller's, set by each run. */
    tsr_tensor *tensors;
    tsr_tensor *given; /**< the caller's tensors that are converted, in the same places */
    tsr_sync_memory_block stage, workspace;
    bool started;
    tsr_stream stream; /**< of what is started */
};

#endif
