/* Copies and fills of boxes: checked, cut into what a kernel takes, launched, all boxes of a call at once where they fit. */
#include "device/cuda/batch.h"
#include "device/cuda/cuda.h"
#include "device/request.h"
#include <string.h>

typedef struct launcher {
    const tsr_cuda *cuda;
    tsr_stream stream;
    tsr_cuda_pattern *pattern; /* of a fill; NULL for copies */
} launcher;

static tsr_status launch_batch(const launcher *to, tsr_cuda_kernel kernel, const void *batch, uint32_t blocks)
{
    void *arguments[] = {(void *)(uintptr_t)batch, to->pattern};
    return tsr_cuda_launch(to->cuda, kernel, blocks, arguments, to->stream);
}

static tsr_status flush(void *opaque, const tsr_cuda_large_batch *batch, uint32_t dim_count)
{
    const launcher *const to = opaque;
    const bool fill = to->pattern != NULL;
    tsr_cuda_small_batch small;
    if (batch->box_count > TSR_CUDA_SMALL_BOXES || dim_count > TSR_CUDA_SMALL_DIMS)
        return launch_batch(to, fill ? TSR_CUDA_FILL_LARGE : TSR_CUDA_COPY_LARGE, batch, batch->block_count);
    small.box_count = batch->box_count;
    small.block_count = batch->block_count;
    memcpy(small.box, batch->box, batch->box_count * sizeof *batch->box);
    memcpy(small.dim, batch->dim, dim_count * sizeof *batch->dim);
    return launch_batch(to, fill ? TSR_CUDA_FILL_SMALL : TSR_CUDA_COPY_SMALL, &small, small.block_count);
}

static tsr_status copy_all(launcher *to, const tsr_box_copy *boxes, size_t count)
{
    tsr_cuda_batcher batcher;
    tsr_box box;
    tsr_cuda_batcher_init(&batcher, flush, to);
    for (size_t i = 0; i < count; i++)
        if (tsr_box_normalise(&boxes[i], &box))
            TSR_TRY(tsr_cuda_add_copy(&batcher, &box, boxes[i].dst, boxes[i].src));
    return tsr_cuda_batcher_finish(&batcher);
}

tsr_status tsr_cuda_copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    int previous;
    for (size_t i = 0; i < count; i++)
        TSR_TRY(tsr_request_check_box("cuda", "copy", boxes[i].ndim, boxes[i].shape, boxes[i].element_bytes));
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = copy_all(&(launcher){.cuda = self, .stream = stream}, boxes, count);
    tsr_cuda_leave(previous);
    return status;
}

/* The box as a copy onto itself, so that runs are found as they are for copies. */
static tsr_box_copy as_copy(const tsr_box_fill *fill)
{
    tsr_box_copy copy = {.dst = fill->dst, .src = fill->dst, .element_bytes = fill->element_bytes, .ndim = fill->ndim};
    for (int d = 0; d < fill->ndim; d++) {
        copy.shape[d] = fill->shape[d];
        copy.dst_strides[d] = copy.src_strides[d] = fill->dst_strides[d];
    }
    return copy;
}

static tsr_status fill_box(launcher *to, const tsr_box_fill *fill)
{
    const tsr_box_copy copy = as_copy(fill);
    tsr_cuda_batcher batcher;
    tsr_box box;
    if (!tsr_box_normalise(&copy, &box))
        return TSR_OK;
    tsr_cuda_batcher_init(&batcher, flush, to);
    TSR_TRY(tsr_cuda_add_fill(&batcher, &box, fill->dst, fill->element_bytes));
    return tsr_cuda_batcher_finish(&batcher);
}

tsr_status tsr_cuda_fill(void *self, int index, const tsr_box_fill *fill, tsr_stream stream)
{
    tsr_cuda_pattern pattern;
    int previous;
    TSR_TRY(tsr_request_check_box("cuda", "fill", fill->ndim, fill->shape, fill->element_bytes));
    for (size_t i = 0; i < sizeof pattern.bytes; i++)
        pattern.bytes[i] = fill->value[i % fill->element_bytes];
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = fill_box(&(launcher){.cuda = self, .stream = stream, .pattern = &pattern}, fill);
    tsr_cuda_leave(previous);
    return status;
}
