#include "device/cuda/reduce_kernels.cuh"

TSR_CUDA_FLOAT_NUMBERS(DEFINE_REDUCE)
