/* GEMMs of the operation table: checks them, has cuBLASLt multiply, and does the rest (k of 0, some
 * biases) with other kernels. */
#include "device/cuda/product.h"

#include "device/cuda/cublaslt.h"
#include "device/cuda/launch.h"

#include <stdint.h>

static bool is_uniform(const tsr_gemm *g)
{
    const bool narrow = g->a_dtype == TSR_F16 || g->a_dtype == TSR_BF16;
    return g->a_dtype == g->b_dtype && (g->c_dtype == g->a_dtype || (narrow && g->c_dtype == TSR_F32));
}

static tsr_status check_gemm(const tsr_gemm *g)
{
    if (!tsr_cuda_blas_takes(g->a_dtype))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "cuda device: no GEMM of %s; there are f64, f32, f16 and bf16",
                              tsr_dtype_name(g->a_dtype));
    if (!is_uniform(g))
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "cuda device: no GEMM of %s and %s to %s; both operands must have one dtype, and the "
                              "result theirs or, for f16 and "
                              "bf16, f32; convert one of them",
                              tsr_dtype_name(g->a_dtype), tsr_dtype_name(g->b_dtype), tsr_dtype_name(g->c_dtype));
    if (g->bias && g->bias_dtype != g->c_dtype)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "cuda device: a GEMM to %s adds no bias of %s; convert the bias",
                              tsr_dtype_name(g->c_dtype), tsr_dtype_name(g->bias_dtype));
    if (g->m < 0 || g->n < 0 || g->k < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "cuda device: a GEMM of m=%lld, n=%lld, k=%lld; sizes are at least 0",
                              (long long)g->m, (long long)g->n, (long long)g->k);
    const int64_t a = g->trans_a ? g->m : g->k, b = g->trans_b ? g->k : g->n;
    if (g->lda < a || g->ldb < b || g->ldc < g->n)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "cuda device: lda, ldb, ldc are %lld, %lld, %lld; rows have %lld, %lld"
                              ", %lld elements",
                              (long long)g->lda, (long long)g->ldb, (long long)g->ldc, (long long)a, (long long)b,
                              (long long)g->n);
    return TSR_OK;
}

static tsr_status refuse_beta(const tsr_gemm *g, const char *what)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "cuda device: a GEMM of %s, %s, with beta %g; beta is 0 or 1 there",
                          tsr_dtype_name(g->c_dtype), what, g->beta);
}

/* c = bias in every row. */
static tsr_status copy_bias(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    const tsr_box_copy box = {.dst = g->c,
                              .src = g->bias,
                              .element_bytes = tsr_dtype_bytes(g->c_dtype),
                              .ndim = 2,
                              .shape = {g->m, g->n},
                              .dst_strides = {g->ldc, 1},
                              .src_strides = {0, 1}};
    return tsr_cuda_copy_boxes(cuda, index, &box, 1, stream);
}

/* c = c + bias in every row. */
static tsr_status add_bias(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    const void *const src[] = {g->c, g->bias};
    const int64_t src_strides[2][TSR_MAX_DIMS] = {{g->ldc, 1}, {0, 1}}, dst_strides[1][TSR_MAX_DIMS] = {{g->ldc, 1}};
    void *const dst[] = {g->c};
    const tsr_box_reduce sum = {.dtype = g->c_dtype,
                                .op = TSR_SUM,
                                .divisor = 1,
                                .ndim = 2,
                                .shape = {g->m, g->n},
                                .src_count = 2,
                                .dst_count = 1,
                                .src = src,
                                .src_strides = src_strides,
                                .dst = dst,
                                .dst_strides = dst_strides};
    return tsr_cuda_reduce_boxes(cuda, index, &sum, stream);
}

/* c = beta c + bias. TSR_ERROR_UNSUPPORTED: beta is not 0 or 1. */
static tsr_status start_from_bias(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    if (g->beta != 0 && g->beta != 1)
        return refuse_beta(g, g->k == 0 ? "of k=0" : "whose bias is added apart");
    return g->beta == 0 ? copy_bias(cuda, index, g, stream) : add_bias(cuda, index, g, stream);
}

/* A product with k = 0: c = beta c + bias. */
static tsr_status multiply_nothing(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    const tsr_box_fill zero = {.dst = g->c,
                               .element_bytes = tsr_dtype_bytes(g->c_dtype),
                               .ndim = 2,
                               .shape = {g->m, g->n},
                               .dst_strides = {g->ldc, 1}};
    if (g->bias)
        return start_from_bias(cuda, index, g, stream);
    if (g->beta == 1)
        return TSR_OK;
    return g->beta == 0 ? tsr_cuda_fill(cuda, index, &zero, stream) : refuse_beta(g, "of k=0");
}

/* The aligned part of the caller's workspace. */
static void *workspace_of(const tsr_gemm *g, size_t *bytes)
{
    const size_t skipped = (size_t)(-(uintptr_t)g->workspace % TSR_CUDA_WORKSPACE_ALIGNMENT);
    *bytes = g->workspace && g->workspace_bytes > skipped ? g->workspace_bytes - skipped : 0;
    return *bytes > 0 ? (char *)g->workspace + skipped : NULL;
}

static tsr_status multiply_by_cublaslt(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    tsr_cuda_choice choice;
    tsr_gemm rest = *g;
    size_t bytes;
    void *const workspace = workspace_of(g, &bytes);
    TSR_TRY(tsr_cuda_blas_choose(cuda, index, g, bytes, false, stream, &choice));
    if (g->bias && !choice.adds_bias) {
        TSR_TRY(start_from_bias(cuda, index, g, stream));
        rest.beta = 1;
    }
    return tsr_cuda_blas_enqueue(&choice, &rest, choice.workspace > 0 ? workspace : NULL, stream);
}

static bool is_empty(const tsr_gemm *g)
{
    return g->m == 0 || g->n == 0;
}

tsr_status tsr_cuda_gemm(void *self, int index, const tsr_gemm *gemm, tsr_stream stream)
{
    int previous;
    TSR_TRY(check_gemm(gemm));
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = is_empty(gemm) ? TSR_OK
                              : gemm->k == 0 ? multiply_nothing(self, index, gemm, stream)
                                             : multiply_by_cublaslt(self, index, gemm, stream);
    tsr_cuda_leave(previous);
    return status;
}

/* The algorithm's workspace, and room to align it. */
tsr_status tsr_cuda_gemm_workspace(void *self, int index, const tsr_gemm *gemm, size_t *bytes)
{
    tsr_cuda_choice choice;
    int previous;
    TSR_TRY(check_gemm(gemm));
    if (is_empty(gemm) || gemm->k == 0) {
        *bytes = 0;
        return TSR_OK;
    }
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = tsr_cuda_blas_prefer(self, index, gemm, &choice);
    tsr_cuda_leave(previous);
    if (status == TSR_OK)
        *bytes = choice.workspace > 0 ? choice.workspace + TSR_CUDA_WORKSPACE_ALIGNMENT - 1 : 0;
    return status;
}
