/* Integers and complex numbers. */
#include "device/cuda/reduce_kernels.cuh"

TSR_CUDA_OTHER_NUMBERS(DEFINE_REDUCE)
