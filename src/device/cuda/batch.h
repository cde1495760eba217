/** From boxes to batches of them that one launch copies or fills. Integers only: nothing here calls CUDA. */
#ifndef TSR_DEVICE_CUDA_BATCH_H
#define TSR_DEVICE_CUDA_BATCH_H

#include "device/cuda/work.h"
#include "device/host/box.h"
#include <stdbool.h>

/** Launches what the batch holds; called with at least one box. */
typedef tsr_status tsr_cuda_flush(void *to, const tsr_cuda_large_batch *batch, uint32_t dim_count);

typedef struct tsr_cuda_batcher {
    tsr_cuda_flush *flush;
    void *to;
    uint32_t dim_count;
    tsr_cuda_large_batch batch; /**< of the arrays, what the counts say is valid */
} tsr_cuda_batcher;

tsr_cuda_divisor tsr_cuda_make_divisor(uint32_t value);

/** An empty batch. */
void tsr_cuda_batcher_init(tsr_cuda_batcher *batcher, tsr_cuda_flush *flush, void *to);

/** Adds a box that tsr_box_normalise() made, in as many pieces as alignment and size ask for; flushes when the batch is full. */
tsr_status tsr_cuda_add_copy(tsr_cuda_batcher *batcher, const tsr_box *box, unsigned char *dst, const unsigned char *src);

/** Likewise for a fill, of elements of `element_bytes`: source strides are not looked at. */
tsr_status tsr_cuda_add_fill(tsr_cuda_batcher *batcher, const tsr_box *box, unsigned char *dst, size_t element_bytes);

/** Flushes what is left. */
tsr_status tsr_cuda_batcher_finish(tsr_cuda_batcher *batcher);

#endif
