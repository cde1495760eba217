/* Kernels of lists of rows. */
#include "device/cuda/ops/rows.cuh"

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_copy_rows(const __grid_constant__ tsr_cuda_rows given)
{
    tsr_cuda_copy_row(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);
}

#define DEFINE_COMBINE(number)                                                                                         \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_combine_rows_##number(const __grid_constant__ tsr_cuda_rows given)                                    \
    {                                                                                                                  \
        tsr_cuda_combine_row<tsr_cuda_##number>(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);                   \
    }

TSR_CUDA_FLOAT_NUMBERS(DEFINE_COMBINE)
TSR_CUDA_OTHER_NUMBERS(DEFINE_COMBINE)
