/*
 * cuBLASLt takes column-major matrices. To it a row-major matrix is the transposed one, so c = a b
 * is computed as c' = b' a', with the operands exchanged and nothing moved. Its epilogue adds a
 * bias per row of c', which is the bias per column that c wants. A device keeps one handle, and the
 * choices for recent problems.
 */
#include "device/cuda/cublaslt.h"

#include <tessera/sys/memory.h>

#include <stdint.h>
#include <string.h>

/* What NVIDIA's guide recommends for Hopper; on other devices less memory would only exclude
 * algorithms. */
#define MOST_WORKSPACE ((size_t)32 << 20)
/* Problems that a device remembers, each at the place of its hash; a new problem replaces the old
 * one there. */
#define CACHE_ENTRIES 512
/* The largest alignment, in bytes, that algorithms ask for. */
#define MOST_ALIGNED 256

/* All that cuBLASLt's heuristics know of a product. Every byte is set, so that keys compare as
 * memory. */
typedef struct problem {
    int64_t m, n, k, lda, ldb, ldc;
    uint64_t workspace;    /* the most bytes that an algorithm may use */
    int32_t dtype, result; /* the dtype of both operands, and that of c */
    int16_t trans_a, trans_b;
    uint32_t a_aligned, b_aligned, c_aligned, bias_aligned, tf32; /* bias_aligned: 0 without a bias */
} problem;

typedef struct entry {
    bool used;
    problem key;
    tsr_cuda_choice choice;
} entry;

typedef struct station {
    cublasLtHandle_t handle;
    pthread_mutex_t mutex; /* protects `cache` */
    entry cache[CACHE_ENTRIES];
} station;

struct tsr_cuda_gemms {
    pthread_mutex_t mutex;        /* held while a station is made */
    _Atomic(station *) station[]; /* one per device; NULL until the device's first GEMM */
};

/* How cuBLASLt computes on a dtype. f64 has no epilogues (cuBLASLt's table of types). */
typedef struct type_row {
    bool known, has_epilogues;
    cudaDataType_t type, scale;
    cublasComputeType_t compute;
} type_row;

static const type_row types[TSR_DTYPE_END] = {
    [TSR_F64] = {true, false, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    [TSR_F32] = {true, true, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [TSR_F16] = {true, true, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [TSR_BF16] = {true, true, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
};

bool tsr_cuda_blas_takes(tsr_dtype dtype)
{
    return (unsigned)dtype < TSR_DTYPE_END && types[dtype].known;
}

tsr_status tsr_cuda_blas_status(cublasStatus_t status, const char *call, const char *doing)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return TSR_OK;
    const tsr_status ours = status == CUBLAS_STATUS_ALLOC_FAILED    ? TSR_ERROR_MEMORY
                            : status == CUBLAS_STATUS_NOT_SUPPORTED ? TSR_ERROR_UNSUPPORTED
                                                                    : TSR_ERROR_DEVICE;
    return tsr_status_set(ours, "cuda device: %.*s, %s, failed: %s (%s)", (int)strcspn(call, "("), call, doing,
                          cublasLtGetStatusName(status), cublasLtGetStatusString(status));
}

tsr_status tsr_cuda_gemms_create(tsr_context *context, int devices, tsr_cuda_gemms **out)
{
    tsr_cuda_gemms *gemms;
    const size_t bytes = sizeof *gemms + (size_t)devices * sizeof gemms->station[0];
    TSR_TRY(tsr_allocate(context, bytes, (void **)&gemms));
    memset(gemms, 0, bytes);
    if (pthread_mutex_init(&gemms->mutex, NULL) != 0) {
        tsr_release(context, gemms);
        return tsr_status_set(TSR_ERROR_MEMORY, "cuda device: no memory for a mutex");
    }
    *out = gemms;
    return TSR_OK;
}

static void destroy_station(tsr_cuda *cuda, int index)
{
    station *const s = atomic_load(&cuda->gemms->station[index]);
    int previous;
    if (!s || tsr_cuda_enter(cuda, index, &previous) != TSR_OK)
        return;
    (void)cublasLtDestroy(s->handle);
    pthread_mutex_destroy(&s->mutex);
    tsr_release(cuda->context, s);
    tsr_cuda_leave(previous);
}

void tsr_cuda_gemms_destroy(tsr_cuda *cuda)
{
    if (!cuda->gemms)
        return;
    for (int index = 0; index < cuda->count; index++)
        destroy_station(cuda, index);
    pthread_mutex_destroy(&cuda->gemms->mutex);
    tsr_release(cuda->context, cuda->gemms);
    cuda->gemms = NULL;
}

/* During a capture work is recorded, not done, but making a handle allocates device memory at once.
 * cudaErrorStreamCaptureImplicit: the default stream cannot be asked while a stream that waits for
 * it is captured. */
static tsr_status refuse_capture(tsr_stream stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t error = cudaStreamIsCapturing(stream, &capture);
    if (error == cudaErrorStreamCaptureImplicit)
        (void)cudaGetLastError();
    else
        TSR_TRY(tsr_cuda_status(error, "cudaStreamIsCapturing", "asking whether a stream is being captured"));
    if (error != cudaSuccess || capture != cudaStreamCaptureStatusNone)
        return tsr_status_set(
            TSR_ERROR_STATE,
            "cuda device: the first GEMM on a device makes cuBLASLt's handle, which cannot be captured; "
            "ask for its workspace (gemm_workspace), or run it once, before the capture begins");
    return TSR_OK;
}

static tsr_status make_station(tsr_context *context, tsr_stream stream, station **out)
{
    station *s;
    TSR_TRY(refuse_capture(stream));
    TSR_TRY(tsr_allocate(context, sizeof *s, (void **)&s));
    memset(s, 0, sizeof *s);
    tsr_status status = tsr_cuda_blas_status(cublasLtCreate(&s->handle), "cublasLtCreate", "starting cuBLASLt");
    if (status != TSR_OK)
        goto release_station;
    if (pthread_mutex_init(&s->mutex, NULL) != 0) {
        status = tsr_status_set(TSR_ERROR_MEMORY, "cuda device: no memory for a mutex");
        goto destroy_handle;
    }
    *out = s;
    return TSR_OK;

destroy_handle:
    (void)cublasLtDestroy(s->handle);
release_station:
    tsr_release(context, s);
    return status;
}

static tsr_status find_station(tsr_cuda *cuda, int index, tsr_stream stream, station **out)
{
    tsr_cuda_gemms *const gemms = cuda->gemms;
    tsr_status status = TSR_OK;
    *out = atomic_load_explicit(&gemms->station[index], memory_order_acquire);
    if (*out)
        return TSR_OK;
    pthread_mutex_lock(&gemms->mutex);
    *out = atomic_load(&gemms->station[index]);
    if (!*out)
        status = make_station(cuda->context, stream, out);
    if (status == TSR_OK)
        atomic_store(&gemms->station[index], *out);
    pthread_mutex_unlock(&gemms->mutex);
    return status;
}

static uint32_t alignment_of(const void *address)
{
    const uintptr_t bits = (uintptr_t)address | MOST_ALIGNED;
    return (uint32_t)(bits & (~bits + 1));
}

/* TF32 lets tensor cores multiply. A product with a single row or column is limited by memory, so
 * it keeps f32's bits at no cost. `aligned`: see tsr_cuda_blas_choose(). */
static problem problem_of(const tsr_cuda *cuda, const tsr_gemm *g, size_t workspace, bool aligned)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.m = g->m, p.n = g->n, p.k = g->k;
    p.lda = g->lda, p.ldb = g->ldb, p.ldc = g->ldc;
    p.workspace = workspace;
    p.dtype = (int32_t)g->a_dtype, p.result = (int32_t)g->c_dtype;
    p.trans_a = g->trans_a != 0, p.trans_b = g->trans_b != 0;
    p.a_aligned = aligned ? MOST_ALIGNED : alignment_of(g->a);
    p.b_aligned = aligned ? MOST_ALIGNED : alignment_of(g->b);
    p.c_aligned = aligned ? MOST_ALIGNED : alignment_of(g->c);
    p.bias_aligned = !g->bias ? 0 : aligned ? MOST_ALIGNED : alignment_of(g->bias);
    p.tf32 = cuda->tf32 && g->a_dtype == TSR_F32 && g->m > 1 && g->n > 1;
    return p;
}

/* Describes a matrix of `rows` stored rows with `columns` elements each, `ld` elements apart;
 * cuBLASLt sees the rows as columns. */
static tsr_status describe_matrix(cublasLtMatrixLayoutOpaque_t *out, cudaDataType_t type, int64_t rows, int64_t columns,
                                  int64_t ld)
{
    TSR_BLAS_TRY(cublasLtMatrixLayoutInit(out, type, (uint64_t)columns, (uint64_t)rows, ld), "describing a matrix");
    return TSR_OK;
}

static tsr_status set_transposed(tsr_cuda_choice *c, cublasLtMatmulDescAttributes_t attribute, int32_t transposed)
{
    const int32_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    TSR_BLAS_TRY(cublasLtMatmulDescSetAttribute(&c->product, attribute, &value, sizeof value), "describing a product");
    return TSR_OK;
}

static tsr_status set_bias(tsr_cuda_choice *c, const void *bias)
{
    TSR_BLAS_TRY(cublasLtMatmulDescSetAttribute(&c->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
                 "describing a product");
    return TSR_OK;
}

/* For the choice of an algorithm, the bias' address is replaced by its alignment, which is all that
 * matters of it. */
static tsr_status describe_bias(const problem *p, tsr_cuda_choice *c)
{
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    TSR_BLAS_TRY(cublasLtMatmulDescSetAttribute(&c->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
                 "describing a product");
    c->adds_bias = true;
    return set_bias(c, (const void *)(uintptr_t)p->bias_aligned);
}

static tsr_status describe_product(const problem *p, bool adds_bias, tsr_cuda_choice *c)
{
    const type_row *const t = &types[p->dtype];
    const cublasComputeType_t compute = p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : t->compute;
    TSR_BLAS_TRY(cublasLtMatmulDescInit(&c->product, compute, t->scale), "describing a product");
    TSR_TRY(set_transposed(c, CUBLASLT_MATMUL_DESC_TRANSA, p->trans_b));
    TSR_TRY(set_transposed(c, CUBLASLT_MATMUL_DESC_TRANSB, p->trans_a));
    if (adds_bias)
        TSR_TRY(describe_bias(p, c));
    TSR_TRY(describe_matrix(&c->left, t->type, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb));
    TSR_TRY(describe_matrix(&c->right, t->type, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda));
    return describe_matrix(&c->result, types[p->result].type, p->m, p->n, p->ldc);
}

static tsr_status prefer(const problem *p, cublasLtMatmulPreferenceOpaque_t *preference)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t bytes;
    } rows[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->workspace, sizeof p->workspace},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &p->b_aligned, sizeof p->b_aligned},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &p->a_aligned, sizeof p->a_aligned},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &p->c_aligned, sizeof p->c_aligned},
                {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &p->c_aligned, sizeof p->c_aligned}};
    TSR_BLAS_TRY(cublasLtMatmulPreferenceInit(preference), "choosing an algorithm");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        TSR_BLAS_TRY(cublasLtMatmulPreferenceSetAttribute(preference, rows[i].attribute, rows[i].value, rows[i].bytes),
                     "choosing an algorithm");
    return TSR_OK;
}

/* Asks cuBLASLt for an algorithm. TSR_ERROR_UNSUPPORTED: it returns that, or no result, or a result
 * whose state is a failure. */
static tsr_status ask_for_algorithm(cublasLtHandle_t handle, const problem *p, bool adds_bias, tsr_cuda_choice *out)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found;
    tsr_cuda_choice c;
    int count = 0;
    memset(&c, 0, sizeof c);
    TSR_TRY(describe_product(p, adds_bias, &c));
    TSR_TRY(prefer(p, &preference));
    TSR_BLAS_TRY(cublasLtMatmulAlgoGetHeuristic(handle, &c.product, &c.left, &c.right, &c.result, &c.result,
                                                &preference, 1, &found, &count),
                 "choosing an algorithm");
    if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED, "cuda device: cuBLASLt knows no algorithm for %s [%lld,%lld] x [%lld,%lld]",
            tsr_dtype_name((tsr_dtype)p->dtype), (long long)p->m, (long long)p->k, (long long)p->k, (long long)p->n);
    c.handle = handle;
    c.algorithm = found.algo;
    c.workspace = found.workspaceSize;
    *out = c;
    return TSR_OK;
}

/* If no algorithm adds the bias, the choice leaves the bias to the caller. */
static tsr_status search(cublasLtHandle_t handle, const problem *p, tsr_cuda_choice *out)
{
    const bool with_bias = p->bias_aligned > 0 && types[p->dtype].has_epilogues;
    const tsr_status status = with_bias ? ask_for_algorithm(handle, p, true, out) : TSR_ERROR_UNSUPPORTED;
    return status == TSR_ERROR_UNSUPPORTED ? ask_for_algorithm(handle, p, false, out) : status;
}

/* The place of a problem in the cache, by FNV-1a (Fowler, Noll and Vo) over 64-bit words. */
static size_t slot_of(const problem *p)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), words[sizeof *p / sizeof(uint64_t)];
    _Static_assert(sizeof *p % sizeof(uint64_t) == 0, "a problem is words");
    memcpy(words, p, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = (hash ^ words[i]) * UINT64_C(0x100000001b3) ^ hash >> 29;
    return (size_t)(hash >> 32) % CACHE_ENTRIES;
}

static tsr_status find_choice(station *s, const problem *p, tsr_cuda_choice *out)
{
    entry *const e = &s->cache[slot_of(p)];
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&s->mutex);
    if (!e->used || memcmp(&e->key, p, sizeof *p) != 0) {
        tsr_cuda_choice chosen;
        status = search(s->handle, p, &chosen);
        if (status == TSR_OK)
            *e = (entry){.used = true, .key = *p, .choice = chosen};
    }
    if (status == TSR_OK)
        *out = e->choice;
    pthread_mutex_unlock(&s->mutex);
    return status;
}

/* The greatest power of two that is at most `bytes`, or 0, so that many workspace sizes make few
 * problems. */
static size_t rounded_down(size_t bytes)
{
    size_t power = bytes > 0;
    while (power > 0 && power <= bytes / 2)
        power *= 2;
    return power;
}

tsr_status tsr_cuda_blas_choose(tsr_cuda *cuda, int index, const tsr_gemm *g, size_t workspace, bool aligned,
                                tsr_stream stream, tsr_cuda_choice *out)
{
    station *s;
    problem p = problem_of(cuda, g, MOST_WORKSPACE, aligned);
    TSR_TRY(find_station(cuda, index, stream, &s));
    TSR_TRY(find_choice(s, &p, out));
    if (out->workspace <= workspace)
        return TSR_OK;
    p.workspace = rounded_down(workspace);
    return find_choice(s, &p, out);
}

tsr_status tsr_cuda_blas_prefer(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_cuda_choice *out)
{
    return tsr_cuda_blas_choose(cuda, index, g, MOST_WORKSPACE, true, NULL, out);
}

tsr_status tsr_cuda_blas_enqueue(tsr_cuda_choice *c, const tsr_gemm *g, void *workspace, tsr_stream stream)
{
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    const bool wide = g->c_dtype == TSR_F64;
    if (c->adds_bias)
        TSR_TRY(set_bias(c, g->bias));
    TSR_BLAS_TRY(cublasLtMatmul(c->handle, &c->product, wide ? (const void *)&g->alpha : &alpha, g->b, &c->left, g->a,
                                &c->right, wide ? (const void *)&g->beta : &beta, g->c, &c->result, g->c, &c->result,
                                &c->algorithm, workspace, c->workspace, stream),
                 "multiplying matrices");
    return TSR_OK;
}
