#include "device/cuda/convert.cuh"

#define DEFINE_CONVERT(source)                                                                                         \
    extern "C" __global__ void __launch_bounds__(TSR_CUDA_THREADS)                                                     \
        tsr_cuda_convert_##source(const __grid_constant__ tsr_cuda_convert given)                                      \
    {                                                                                                                  \
        tsr_cuda_convert_from<tsr_cuda_##source>(given, (int64_t)blockIdx.x * TSR_CUDA_THREADS + threadIdx.x);         \
    }

TSR_CUDA_FLOAT_NUMBERS(DEFINE_CONVERT)
