/** The reduction kernels of one type of numbers: for units of 16 bytes, and of one element. */
#ifndef TSR_DEVICE_CUDA_REDUCE_KERNELS_CUH
#define TSR_DEVICE_CUDA_REDUCE_KERNELS_CUH

#include "device/cuda/reduce.cuh"

#define DEFINE_REDUCE_OF(number, kind, count)                                                                          \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_reduce_##number##_##kind(const __grid_constant__ tsr_cuda_reduce given)                               \
    {                                                                                                                  \
        tsr_cuda_reduce_unit<tsr_cuda_##number, count>(given, blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);            \
    }

#define DEFINE_REDUCE(number)                                                                                          \
    DEFINE_REDUCE_OF(number, wide, tsr_cuda_per_quad<tsr_cuda_##number>::count)                                        \
    DEFINE_REDUCE_OF(number, single, 1)

#endif
