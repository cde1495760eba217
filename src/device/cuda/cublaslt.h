/** Products by cuBLASLt: its choices of algorithms, and its errors as statuses. */
#ifndef TSR_DEVICE_CUDA_CUBLASLT_H
#define TSR_DEVICE_CUDA_CUBLASLT_H

#include "device/cuda/gpu.h"

#include <cublasLt.h>

/** How a product is computed: enough to enqueue it any number of times on operands with the same
 * alignments. */
typedef struct tsr_cuda_choice {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t left, right, result;
    cublasLtMatmulAlgo_t algorithm;
    cublasLtHandle_t handle;
    size_t workspace; /**< bytes that the algorithm uses, at an address that is a multiple of
                         TSR_CUDA_WORKSPACE_ALIGNMENT */
    bool adds_bias;   /**< the product adds the bias; false: the caller adds it */
} tsr_cuda_choice;

/** The alignment of a workspace's address, in bytes. */
#define TSR_CUDA_WORKSPACE_ALIGNMENT 256

/** True if GEMMs take the dtype. */
bool tsr_cuda_blas_takes(tsr_dtype dtype);

/** Chooses how to compute `gemm`, whose sizes are at least 1, with at most `workspace` bytes. A
 * problem's choice is searched for once, then found in a cache. Any thread; allocates nothing once
 * the device has its handle. `aligned`: assume the largest alignment of all operands, whatever
 * their pointers. `stream` is the stream on which it will be enqueued. TSR_ERROR_UNSUPPORTED: no
 * algorithm computes it. TSR_ERROR_STATE: the device has no handle yet, and the stream is being
 * captured. */
tsr_status tsr_cuda_blas_choose(tsr_cuda *cuda, int index, const tsr_gemm *gemm, size_t workspace, bool aligned,
                                tsr_stream stream, tsr_cuda_choice *out);

/** The fastest choice for aligned operands, if it gets all the workspace it wants (32 MiB at
 * most). */
tsr_status tsr_cuda_blas_prefer(tsr_cuda *cuda, int index, const tsr_gemm *gemm, tsr_cuda_choice *out);

/** Enqueues a product, with its bias if choice->adds_bias. `workspace` has choice->workspace bytes;
 * NULL if that is 0. */
tsr_status tsr_cuda_blas_enqueue(tsr_cuda_choice *choice, const tsr_gemm *gemm, void *workspace, tsr_stream stream);

/** tsr_cuda_status() for statuses of cuBLASLt. TSR_ERROR_UNSUPPORTED stands for
 * CUBLAS_STATUS_NOT_SUPPORTED. */
tsr_status tsr_cuda_blas_status(cublasStatus_t status, const char *call, const char *doing);

/** Returns from the enclosing function unless `call`, a call of cuBLASLt, succeeds. */
#define TSR_BLAS_TRY(call, doing) TSR_TRY(tsr_cuda_blas_status(call, #call, doing))

/** Makes what GEMMs keep for each of `devices` devices: handle and cache. The driver owns it. */
tsr_status tsr_cuda_gemms_create(tsr_context *context, int devices, tsr_cuda_gemms **out);

/** Destroys cuda->gemms, which may be NULL; before the devices close. */
void tsr_cuda_gemms_destroy(tsr_cuda *cuda);

#endif
