/** Products through cuBLASLt: what it was asked, what it chose, and what becomes of its errors. */
#ifndef TSR_DEVICE_CUDA_CUBLASLT_H
#define TSR_DEVICE_CUDA_CUBLASLT_H

#include <cublasLt.h>

#include "device/cuda/gpu.h"

/** How a product is computed: enough to enqueue it any number of times on operands that are aligned alike. */
typedef struct tsr_cuda_choice {
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t left, right, result;
    cublasLtMatmulAlgo_t algorithm;
    cublasLtHandle_t handle;
    size_t workspace; /**< bytes that the algorithm uses, at an address that is a multiple of TSR_CUDA_WORKSPACE_ALIGNMENT */
    bool adds_bias;   /**< the product itself does */
} tsr_cuda_choice;

/** What cuBLASLt wants of a workspace's address. */
#define TSR_CUDA_WORKSPACE_ALIGNMENT 256

/** 1 if GEMMs take the dtype. */
bool tsr_cuda_blas_takes(tsr_dtype dtype);

/** The way to compute `gemm`, whose sizes are at least 1, with at most `workspace` bytes. Searched once for a problem, then found, by any
 * thread; allocates nothing once a device has its handle. `aligned`: for operands as aligned as can be, whatever their pointers. `stream`
 * is where it will be used. TSR_ERROR_UNSUPPORTED: there is no way. */
tsr_status tsr_cuda_blas_choose(tsr_cuda *cuda, int index, const tsr_gemm *gemm, size_t workspace, bool aligned, tsr_stream stream,
                                tsr_cuda_choice *out);

/** The way that is fastest if it gets all the workspace it wants. */
tsr_status tsr_cuda_blas_prefer(tsr_cuda *cuda, int index, const tsr_gemm *gemm, tsr_cuda_choice *out);

/** Enqueues a product; a bias is added where the choice says so. `workspace` is NULL where it wants none. */
tsr_status tsr_cuda_blas_enqueue(tsr_cuda_choice *choice, const tsr_gemm *gemm, void *workspace, tsr_stream stream);

/** As tsr_cuda_status() does for the runtime. */
tsr_status tsr_cuda_blas_status(cublasStatus_t status, const char *call, const char *doing);

/** Returns from the enclosing function unless `call`, a call of cuBLASLt, succeeds. */
#define TSR_BLAS_TRY(call, doing) TSR_TRY(tsr_cuda_blas_status(call, #call, doing))

/** What GEMMs keep: made with the driver, gone before its devices close. */
tsr_status tsr_cuda_gemms_create(tsr_context *context, int devices, tsr_cuda_gemms **out);
void tsr_cuda_gemms_destroy(tsr_cuda *cuda);

#endif
