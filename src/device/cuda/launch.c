#include "device/cuda/cuda.h"

tsr_status tsr_cuda_launch(const tsr_cuda *cuda, tsr_cuda_kernel kernel, uint32_t blocks, void **arguments, tsr_stream stream)
{
    const dim3 grid = {blocks, 1, 1}, block = {TSR_CUDA_THREADS, 1, 1};
    const char *const doing = kernel < TSR_CUDA_FILL_SMALL    ? "launching a copy of boxes"
                              : kernel < TSR_CUDA_CONVERT     ? "launching a fill"
                              : kernel < TSR_CUDA_REDUCE_WIDE ? "launching a conversion"
                                                              : "launching a reduction";
    return tsr_cuda_status(cudaLaunchKernel((const void *)cuda->kernels.kernel[kernel], grid, block, arguments, 0, stream),
                           "cudaLaunchKernel", doing);
}
