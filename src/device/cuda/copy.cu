/* Copies and fills, each for small and for large batches: launching a kernel with 4 KiB of
 * arguments is cheaper than with 32 KiB. */
#include "device/cuda/copy.cuh"

#define DEFINE_COPY(size)                                                                                              \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_copy_##size(const __grid_constant__ tsr_cuda_##size##_batch given)                                    \
    {                                                                                                                  \
        __shared__ tsr_cuda_tile tile;                                                                                 \
        tsr_cuda_copy_batch(given, blockIdx.x, threadIdx.x, TSR_CUDA_BEFORE, &tile);                                   \
        __syncthreads();                                                                                               \
        tsr_cuda_copy_batch(given, blockIdx.x, threadIdx.x, TSR_CUDA_AFTER, &tile);                                    \
    }

#define DEFINE_FILL(size)                                                                                              \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS) tsr_cuda_fill_##size(                               \
        const __grid_constant__ tsr_cuda_##size##_batch given, const __grid_constant__ tsr_cuda_pattern pattern)       \
    {                                                                                                                  \
        tsr_cuda_fill_batch(given, pattern, blockIdx.x, threadIdx.x);                                                  \
    }

DEFINE_COPY(small)
DEFINE_COPY(large)
DEFINE_FILL(small)
DEFINE_FILL(large)
