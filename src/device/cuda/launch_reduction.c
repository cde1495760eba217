/* Reductions: checked, and launched with the kernel of their dtype. */
#include "device/cuda/cuda.h"
#include "device/cuda/reduction.h"
#include "device/request.h"

typedef struct launcher {
    const tsr_cuda *cuda;
    tsr_cuda_number number;
    tsr_stream stream;
} launcher;

/* Signed integers share the kernels of unsigned ones of their size; bool is a byte with min and max. */
static const tsr_cuda_number numbers[TSR_DTYPE_END] = {
    [TSR_F64] = TSR_CUDA_NUMBER_F64,   [TSR_F32] = TSR_CUDA_NUMBER_F32,       [TSR_F16] = TSR_CUDA_NUMBER_F16,
    [TSR_BF16] = TSR_CUDA_NUMBER_BF16, [TSR_F8E4M3] = TSR_CUDA_NUMBER_F8E4M3, [TSR_F8E5M2] = TSR_CUDA_NUMBER_F8E5M2,
    [TSR_I64] = TSR_CUDA_NUMBER_U64,   [TSR_I32] = TSR_CUDA_NUMBER_U32,       [TSR_I16] = TSR_CUDA_NUMBER_U16,
    [TSR_I8] = TSR_CUDA_NUMBER_U8,     [TSR_U64] = TSR_CUDA_NUMBER_U64,       [TSR_U32] = TSR_CUDA_NUMBER_U32,
    [TSR_U16] = TSR_CUDA_NUMBER_U16,   [TSR_U8] = TSR_CUDA_NUMBER_U8,         [TSR_BOOL] = TSR_CUDA_NUMBER_U8,
    [TSR_C64] = TSR_CUDA_NUMBER_C64,   [TSR_C128] = TSR_CUDA_NUMBER_C128,
};

static tsr_cuda_op op_of(tsr_reduce_op op, tsr_dtype_class kind)
{
    static const tsr_cuda_op ops[TSR_REDUCE_OP_END] = {
        [TSR_SUM] = TSR_CUDA_SUM, [TSR_AVG] = TSR_CUDA_SUM, [TSR_MIN] = TSR_CUDA_MIN, [TSR_MAX] = TSR_CUDA_MAX, [TSR_PROD] = TSR_CUDA_PROD};
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

static tsr_status launch(void *opaque, const tsr_cuda_reduce *given, bool wide)
{
    const launcher *const to = opaque;
    const tsr_cuda_kernel first = wide ? TSR_CUDA_REDUCE_WIDE : TSR_CUDA_REDUCE_SINGLE;
    void *arguments[] = {(void *)(uintptr_t)given};
    return tsr_cuda_launch(to->cuda, first + to->number, (given->head.units + TSR_CUDA_THREADS - 1) / TSR_CUDA_THREADS, arguments,
                           to->stream);
}

tsr_status tsr_cuda_reduce_boxes(void *self, int index, const tsr_box_reduce *given, tsr_stream stream)
{
    int previous;
    TSR_TRY(tsr_request_check_reduction("cuda", given));
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    launcher to = {.cuda = self, .number = numbers[given->dtype], .stream = stream};
    const tsr_status status =
        is_empty(given) ? TSR_OK : tsr_cuda_plan_reduction(given, op_of(given->op, tsr_dtype_get(given->dtype)->kind), launch, &to);
    tsr_cuda_leave(previous);
    return status;
}
