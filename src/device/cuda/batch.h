/** Collects boxes into batches, each copied or filled by one launch. Integers only: nothing here
 * calls CUDA. */
#ifndef TSR_DEVICE_CUDA_BATCH_H
#define TSR_DEVICE_CUDA_BATCH_H

#include "device/cuda/work.h"
#include "device/host/box.h"

/** Launches a batch of at least one box. `to` is what tsr_cuda_batcher_init() was given;
 * `dim_count` entries of batch->dim are valid. */
typedef tsr_status tsr_cuda_flush(void *to, const tsr_cuda_large_batch *batch, uint32_t dim_count);

typedef struct tsr_cuda_batcher {
    tsr_cuda_flush *flush;
    void *to;
    uint32_t dim_count;
    tsr_cuda_large_batch batch; /**< its arrays are valid up to its box_count, and `dim_count` */
} tsr_cuda_batcher;

/** The divisor for tsr_cuda_divide(). */
tsr_cuda_divisor tsr_cuda_make_divisor(uint32_t value);

/** Begins with an empty batch; `flush` is called with `to`. */
void tsr_cuda_batcher_init(tsr_cuda_batcher *batcher, tsr_cuda_flush *flush, void *to);

/** Adds a box that tsr_box_normalise() made, in as many pieces as alignment and size ask for;
 * flushes when the batch is full. */
tsr_status tsr_cuda_add_copy(tsr_cuda_batcher *batcher, const tsr_box *box, unsigned char *dst,
                             const unsigned char *src);

/** Adds a box of a fill, with elements of `element_bytes` bytes, as tsr_cuda_add_copy() adds a
 * copy; its source strides are not read. */
tsr_status tsr_cuda_add_fill(tsr_cuda_batcher *batcher, const tsr_box *box, unsigned char *dst, size_t element_bytes);

/** Flushes what is left. */
tsr_status tsr_cuda_batcher_finish(tsr_cuda_batcher *batcher);

#endif
