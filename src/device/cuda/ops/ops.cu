/* Kernels of ops. */
#include "device/cuda/ops/norms.cuh"

#define DEFINE_ELEMENTS(name, type)                                                                                    \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_elements_##name(const __grid_constant__ tsr_cuda_elements given)                                      \
    {                                                                                                                  \
        tsr_cuda_element<type>(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);                                    \
    }

TSR_CUDA_ELEMENT_TYPES(DEFINE_ELEMENTS)

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_norm_rows(const __grid_constant__ tsr_cuda_norm given)
{
    __shared__ tsr_cuda_row_memory memory;
    tsr_cuda_norm_row(given, blockIdx.x, threadIdx.x, TSR_CUDA_MEASURE, &memory);
    __syncthreads();
    tsr_cuda_norm_row(given, blockIdx.x, threadIdx.x, TSR_CUDA_MERGE, &memory);
    __syncthreads();
    tsr_cuda_norm_row(given, blockIdx.x, threadIdx.x, TSR_CUDA_MAKE, &memory);
}

extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)
    tsr_cuda_norm_sums(const __grid_constant__ tsr_cuda_norm given)
{
    __shared__ tsr_cuda_sum_memory memory;
    tsr_cuda_sum_rows(given, blockIdx.x, threadIdx.x, 0, &memory);
    __syncthreads();
    tsr_cuda_sum_rows(given, blockIdx.x, threadIdx.x, 1, &memory);
}
