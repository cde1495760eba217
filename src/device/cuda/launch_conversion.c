#include "device/cuda/cuda.h"
#include "device/request.h"

/* Of the dtypes that convert: 1 + their tsr_cuda_float. */
static const unsigned char floats[TSR_DTYPE_END] = {
    [TSR_F64] = 1 + TSR_CUDA_F64,   [TSR_F32] = 1 + TSR_CUDA_F32,       [TSR_F16] = 1 + TSR_CUDA_F16,
    [TSR_BF16] = 1 + TSR_CUDA_BF16, [TSR_F8E4M3] = 1 + TSR_CUDA_F8E4M3, [TSR_F8E5M2] = 1 + TSR_CUDA_F8E5M2,
};

static tsr_status launch(const tsr_cuda *cuda, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype, int64_t count,
                         tsr_stream stream)
{
    const int64_t per_block = (int64_t)TSR_CUDA_THREADS * TSR_CUDA_CONVERT_RUN;
    tsr_cuda_convert given = {.dst = dst,
                              .src = src,
                              .count = count,
                              .dst_type = (uint8_t)(floats[dst_dtype] - 1),
                              .aligned = ((uintptr_t)dst | (uintptr_t)src) % 16 == 0};
    void *arguments[] = {&given};
    return tsr_cuda_launch(cuda, TSR_CUDA_CONVERT + floats[src_dtype] - 1, (uint32_t)((count + per_block - 1) / per_block), arguments,
                           stream);
}

tsr_status tsr_cuda_convert_elements(void *self, int index, void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype,
                                     int64_t count, tsr_stream stream)
{
    int previous;
    TSR_TRY(tsr_request_check_conversion("cuda", dst_dtype, src_dtype, count));
    if (dst_dtype == src_dtype)
        return tsr_cuda_copy(self, index, dst, src, (size_t)count * tsr_dtype_bytes(dst_dtype), TSR_COPY_WITHIN, stream);
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = count > 0 ? launch(self, dst, dst_dtype, src, src_dtype, count, stream) : TSR_OK;
    tsr_cuda_leave(previous);
    return status;
}
