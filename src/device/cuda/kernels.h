/**
 * The kernels by number, and how they are loaded: nvcc's images are constants of the library, which
 * the CUDA runtime loads. So nothing is registered when the library is loaded, and launching needs
 * no C++.
 */
#ifndef TSR_DEVICE_CUDA_KERNELS_H
#define TSR_DEVICE_CUDA_KERNELS_H

#include "device/cuda/work.h"

#include <tessera/status.h>

#include <cuda_runtime_api.h>
#include <stdbool.h>

/** The types of numbers that reductions have kernels for, in the order of the kernels. */
typedef enum tsr_cuda_number {
    TSR_CUDA_NUMBER_F64,
    TSR_CUDA_NUMBER_F32,
    TSR_CUDA_NUMBER_F16,
    TSR_CUDA_NUMBER_BF16,
    TSR_CUDA_NUMBER_F8E4M3,
    TSR_CUDA_NUMBER_F8E5M2,
    TSR_CUDA_NUMBER_U8,
    TSR_CUDA_NUMBER_U16,
    TSR_CUDA_NUMBER_U32,
    TSR_CUDA_NUMBER_U64,
    TSR_CUDA_NUMBER_C64,
    TSR_CUDA_NUMBER_C128,
    TSR_CUDA_NUMBER_END
} tsr_cuda_number;

typedef enum tsr_cuda_kernel {
    TSR_CUDA_COPY_SMALL,
    TSR_CUDA_COPY_LARGE,
    TSR_CUDA_FILL_SMALL,
    TSR_CUDA_FILL_LARGE,
    TSR_CUDA_CONVERT, /**< first of TSR_CUDA_FLOAT_END kernels: add the source's tsr_cuda_float */
    /** first of TSR_CUDA_NUMBER_END kernels: add a tsr_cuda_number */
    TSR_CUDA_REDUCE_WIDE = TSR_CUDA_CONVERT + TSR_CUDA_FLOAT_END,
    /** first of TSR_CUDA_NUMBER_END kernels: add a tsr_cuda_number */
    TSR_CUDA_REDUCE_SINGLE = TSR_CUDA_REDUCE_WIDE + TSR_CUDA_NUMBER_END,
    /** pointwise ops, by the type in which they compute */
    TSR_CUDA_ELEMENTS_F64 = TSR_CUDA_REDUCE_SINGLE + TSR_CUDA_NUMBER_END,
    TSR_CUDA_ELEMENTS_F32,
    TSR_CUDA_ELEMENTS_I64,
    TSR_CUDA_ELEMENTS_I32,
    TSR_CUDA_ELEMENTS_BOOL,
    /** updates of optimizers, by the type in which they compute */
    TSR_CUDA_UPDATE_F64,
    TSR_CUDA_UPDATE_F32,
    TSR_CUDA_NORM_ROWS,
    TSR_CUDA_NORM_SUMS,
    TSR_CUDA_FIND_IDS,
    TSR_CUDA_REPORT_ID,
    TSR_CUDA_LINK_IDS,
    TSR_CUDA_READ_SLICES,
    /** sums of slices, by the type in which they are added */
    TSR_CUDA_ADD_F64,
    TSR_CUDA_ADD_F32,
    TSR_CUDA_ADD_I64,
    TSR_CUDA_ADD_I32,
    TSR_CUDA_COPY_ROWS,
    TSR_CUDA_COMBINE_ROWS, /**< first of TSR_CUDA_NUMBER_END kernels: add a tsr_cuda_number */
    TSR_CUDA_KERNEL_END = TSR_CUDA_COMBINE_ROWS + TSR_CUDA_NUMBER_END
} tsr_cuda_kernel;

#define TSR_CUDA_IMAGES 6

typedef struct tsr_cuda_kernels {
    bool loaded;
    cudaLibrary_t library[TSR_CUDA_IMAGES];
    cudaKernel_t kernel[TSR_CUDA_KERNEL_END];
} tsr_cuda_kernels;

/** Loads all kernels; after an error nothing stays loaded. */
tsr_status tsr_cuda_kernels_load(tsr_cuda_kernels *kernels);

/** Unloads the kernels that are loaded, if any. */
void tsr_cuda_kernels_unload(tsr_cuda_kernels *kernels);

#endif
