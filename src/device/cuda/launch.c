/* Checks copies, fills, conversions and reductions, cuts them into pieces that a kernel takes, and
 * launches them: all boxes of a call at once if they fit. */
#include "device/cuda/launch.h"

#include "device/cuda/batch.h"
#include "device/cuda/device_memory.h"
#include "device/cuda/gpu.h"
#include "device/cuda/reduction.h"
#include "device/request.h"

#include <string.h>

tsr_status tsr_cuda_launch(const tsr_cuda *cuda, tsr_cuda_kernel kernel, uint32_t blocks, void **arguments,
                           tsr_stream stream)
{
    const dim3 grid = {blocks, 1, 1}, block = {TSR_CUDA_THREADS, 1, 1};
    const char *const doing = kernel < TSR_CUDA_FILL_SMALL     ? "launching a copy of boxes"
                              : kernel < TSR_CUDA_CONVERT      ? "launching a fill"
                              : kernel < TSR_CUDA_REDUCE_WIDE  ? "launching a conversion"
                              : kernel < TSR_CUDA_ELEMENTS_F64 ? "launching a reduction"
                                                               : "launching an op";
    return tsr_cuda_status(
        cudaLaunchKernel((const void *)cuda->kernels.kernel[kernel], grid, block, arguments, 0, stream),
        "cudaLaunchKernel", doing);
}

typedef struct box_launch {
    const tsr_cuda *cuda;
    tsr_stream stream;
    tsr_cuda_pattern *pattern; /* a fill's pattern; NULL for copies */
} box_launch;

static tsr_status launch_batch(const box_launch *to, tsr_cuda_kernel kernel, const void *batch, uint32_t blocks)
{
    void *arguments[] = {(void *)(uintptr_t)batch, to->pattern};
    return tsr_cuda_launch(to->cuda, kernel, blocks, arguments, to->stream);
}

static tsr_status flush_batch(void *opaque, const tsr_cuda_large_batch *batch, uint32_t dim_count)
{
    const box_launch *const to = opaque;
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

static tsr_status copy_all(box_launch *to, const tsr_box_copy *boxes, size_t count)
{
    tsr_cuda_batcher batcher;
    tsr_box box;
    tsr_cuda_batcher_init(&batcher, flush_batch, to);
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
    const tsr_status status = copy_all(&(box_launch){.cuda = self, .stream = stream}, boxes, count);
    tsr_cuda_leave(previous);
    return status;
}

/* A fill's box as a copy onto itself, so that its runs are found as those of a copy. */
static tsr_box_copy as_copy(const tsr_box_fill *fill)
{
    tsr_box_copy copy = {.dst = fill->dst, .src = fill->dst, .element_bytes = fill->element_bytes, .ndim = fill->ndim};
    for (int d = 0; d < fill->ndim; d++) {
        copy.shape[d] = fill->shape[d];
        copy.dst_strides[d] = copy.src_strides[d] = fill->dst_strides[d];
    }
    return copy;
}

static tsr_status fill_box(box_launch *to, const tsr_box_fill *fill)
{
    const tsr_box_copy copy = as_copy(fill);
    tsr_cuda_batcher batcher;
    tsr_box box;
    if (!tsr_box_normalise(&copy, &box))
        return TSR_OK;
    tsr_cuda_batcher_init(&batcher, flush_batch, to);
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
    const tsr_status status = fill_box(&(box_launch){.cuda = self, .stream = stream, .pattern = &pattern}, fill);
    tsr_cuda_leave(previous);
    return status;
}

/* Per dtype: 1 + its tsr_cuda_float; 0: the dtype does not convert. */
static const unsigned char floats[TSR_DTYPE_END] = {
    [TSR_F64] = 1 + TSR_CUDA_F64,   [TSR_F32] = 1 + TSR_CUDA_F32,       [TSR_F16] = 1 + TSR_CUDA_F16,
    [TSR_BF16] = 1 + TSR_CUDA_BF16, [TSR_F8E4M3] = 1 + TSR_CUDA_F8E4M3, [TSR_F8E5M2] = 1 + TSR_CUDA_F8E5M2,
};

static tsr_status launch_conversion(const tsr_cuda *cuda, void *dst, tsr_dtype dst_dtype, const void *src,
                                    tsr_dtype src_dtype, int64_t count, tsr_stream stream)
{
    const int64_t per_block = (int64_t)TSR_CUDA_THREADS * TSR_CUDA_CONVERT_RUN;
    tsr_cuda_convert given = {.dst = dst,
                              .src = src,
                              .count = count,
                              .dst_type = (uint8_t)(floats[dst_dtype] - 1),
                              .aligned = ((uintptr_t)dst | (uintptr_t)src) % 16 == 0};
    void *arguments[] = {&given};
    return tsr_cuda_launch(cuda, TSR_CUDA_CONVERT + floats[src_dtype] - 1,
                           (uint32_t)((count + per_block - 1) / per_block), arguments, stream);
}

tsr_status tsr_cuda_convert_elements(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src,
                                     tsr_dtype src_dtype, int64_t count, tsr_stream stream)
{
    int previous;
    TSR_TRY(tsr_request_check_conversion("cuda", dst_dtype, src_dtype, count));
    if (dst_dtype == src_dtype)
        return tsr_cuda_copy(self, index, dst, src, (size_t)count * tsr_dtype_bytes(dst_dtype), TSR_COPY_WITHIN,
                             stream);
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status =
        count > 0 ? launch_conversion(self, dst, dst_dtype, src, src_dtype, count, stream) : TSR_OK;
    tsr_cuda_leave(previous);
    return status;
}

typedef struct reduction_launch {
    const tsr_cuda *cuda;
    tsr_cuda_number number;
    tsr_stream stream;
} reduction_launch;

/* Signed integers use the kernels of the unsigned integers of their size; bool, with min and max
 * alone, uses those of u8. */
static const tsr_cuda_number numbers[TSR_DTYPE_END] = {
    [TSR_F64] = TSR_CUDA_NUMBER_F64,   [TSR_F32] = TSR_CUDA_NUMBER_F32,       [TSR_F16] = TSR_CUDA_NUMBER_F16,
    [TSR_BF16] = TSR_CUDA_NUMBER_BF16, [TSR_F8E4M3] = TSR_CUDA_NUMBER_F8E4M3, [TSR_F8E5M2] = TSR_CUDA_NUMBER_F8E5M2,
    [TSR_I64] = TSR_CUDA_NUMBER_U64,   [TSR_I32] = TSR_CUDA_NUMBER_U32,       [TSR_I16] = TSR_CUDA_NUMBER_U16,
    [TSR_I8] = TSR_CUDA_NUMBER_U8,     [TSR_U64] = TSR_CUDA_NUMBER_U64,       [TSR_U32] = TSR_CUDA_NUMBER_U32,
    [TSR_U16] = TSR_CUDA_NUMBER_U16,   [TSR_U8] = TSR_CUDA_NUMBER_U8,         [TSR_BOOL] = TSR_CUDA_NUMBER_U8,
    [TSR_C64] = TSR_CUDA_NUMBER_C64,   [TSR_C128] = TSR_CUDA_NUMBER_C128,
};

tsr_cuda_number tsr_cuda_number_of(tsr_dtype dtype)
{
    return numbers[dtype];
}

tsr_cuda_op tsr_cuda_op_of(tsr_reduce_op op, tsr_dtype dtype)
{
    const tsr_dtype_class kind = tsr_dtype_get(dtype)->kind;
    static const tsr_cuda_op ops[TSR_REDUCE_OP_END] = {[TSR_SUM] = TSR_CUDA_SUM,
                                                       [TSR_AVG] = TSR_CUDA_SUM,
                                                       [TSR_MIN] = TSR_CUDA_MIN,
                                                       [TSR_MAX] = TSR_CUDA_MAX,
                                                       [TSR_PROD] = TSR_CUDA_PROD};
    if (kind == TSR_CLASS_SIGNED && op == TSR_MIN)
        return TSR_CUDA_SIGNED_MIN;
    return kind == TSR_CLASS_SIGNED && op == TSR_MAX ? TSR_CUDA_SIGNED_MAX : ops[op];
}

static bool is_empty(const tsr_box_reduce *given)
{
    for (int d = 0; d < given->ndim; d++)
        if (given->shape[d] == 0)
            return true;
    return false;
}

static tsr_status launch_reduction(void *opaque, const tsr_cuda_reduce *given, bool wide)
{
    const reduction_launch *const to = opaque;
    const tsr_cuda_kernel first = wide ? TSR_CUDA_REDUCE_WIDE : TSR_CUDA_REDUCE_SINGLE;
    void *arguments[] = {(void *)(uintptr_t)given};
    return tsr_cuda_launch(to->cuda, first + to->number, (given->head.units + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS,
                           arguments, to->stream);
}

tsr_status tsr_cuda_reduce_boxes(void *self, int index, const tsr_box_reduce *given, tsr_stream stream)
{
    int previous;
    TSR_TRY(tsr_request_check_reduction("cuda", given));
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    reduction_launch to = {.cuda = self, .number = numbers[given->dtype], .stream = stream};
    const tsr_status status = is_empty(given) ? TSR_OK
                                              : tsr_cuda_plan_reduction(given, tsr_cuda_op_of(given->op, given->dtype),
                                                                        launch_reduction, &to);
    tsr_cuda_leave(previous);
    return status;
}
