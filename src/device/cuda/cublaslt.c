/*
 * GEMM through cuBLASLt. It thinks in columns: a row-major matrix is its transpose there, so c = a b is computed as c' = b' a', with the
 * operands exchanged and nothing moved. A device keeps one handle, the algorithm that the heuristics chose for each problem met lately,
 * and one workspace for each stream, as work on a stream never overlaps itself.
 */
#include "device/cuda/blas.h"
#include "device/cuda/cuda.h"
#include <inttypes.h>
#include <string.h>
#include <tessera/sys/memory.h>

/* What NVIDIA's guide recommends for Hopper; less would only exclude algorithms on others. */
#define WORKSPACE_BYTES ((size_t)32 << 20)
/* Problems that a device remembers, each at the place that its hash gives: a newer one takes over. */
#define CACHE_ENTRIES 256
/* Alignments that algorithms ask for end here. */
#define MOST_ALIGNED 256

/* A problem as the heuristics see it: every byte is set, so that keys compare as memory. */
typedef struct problem {
    int64_t m, n, k, lda, ldb, ldc;
    int32_t dtype, trans_a, trans_b, reads_c;
    uint32_t a_aligned, b_aligned, c_aligned, tf32;
} problem;

typedef struct entry {
    bool used;
    problem key;
    cublasLtMatmulAlgo_t algorithm;
} entry;

typedef struct workspace {
    tsr_stream stream;
    void *memory;
    struct workspace *next;
} workspace;

typedef struct station {
    cublasLtHandle_t handle;
    workspace *workspaces;
    entry cache[CACHE_ENTRIES];
} station;

struct tsr_cuda_gemms {
    pthread_mutex_t mutex; /* of all below */
    station *station[];    /* by device; NULL until its first GEMM */
};

typedef struct type_row {
    bool known;
    cudaDataType_t type, scale;
    cublasComputeType_t compute;
} type_row;

static const type_row types[TSR_DTYPE_END] = {
    [TSR_F64] = {true, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    [TSR_F32] = {true, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [TSR_F16] = {true, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    [TSR_BF16] = {true, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
};

/* Descriptions that live on the stack: nothing is allocated for a call. */
typedef struct operation {
    cublasLtMatmulDescOpaque_t matmul;
    cublasLtMatrixLayoutOpaque_t left, right, result;
} operation;

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
    station *const s = cuda->gemms->station[index];
    int previous;
    if (!s || tsr_cuda_enter(cuda, index, &previous) != TSR_OK)
        return;
    for (workspace *w = s->workspaces, *next; w; w = next) {
        next = w->next;
        tsr_cuda_free(cuda, index, w->memory, WORKSPACE_BYTES, NULL);
        tsr_release(cuda->context, w);
    }
    (void)cublasLtDestroy(s->handle);
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

/* The workspace of a stream, taken off the list; NULL if it has none. */
static workspace *take_workspace(station *s, tsr_stream stream)
{
    for (workspace **at = &s->workspaces; *at; at = &(*at)->next)
        if ((*at)->stream == stream) {
            workspace *const found = *at;
            *at = found->next;
            return found;
        }
    return NULL;
}

void tsr_cuda_gemms_forget(tsr_cuda *cuda, int index, tsr_stream stream)
{
    pthread_mutex_lock(&cuda->gemms->mutex);
    station *const s = cuda->gemms->station[index];
    workspace *const gone = s ? take_workspace(s, stream) : NULL;
    pthread_mutex_unlock(&cuda->gemms->mutex);
    if (!gone)
        return;
    tsr_cuda_free(cuda, index, gone->memory, WORKSPACE_BYTES, stream);
    tsr_release(cuda->context, gone);
}

static tsr_status find_station(tsr_cuda *cuda, int index, station **out)
{
    station *s = cuda->gemms->station[index];
    if (!s) {
        TSR_TRY(tsr_allocate(cuda->context, sizeof *s, (void **)&s));
        memset(s, 0, sizeof *s);
        const tsr_status status = tsr_cuda_blas_status(cublasLtCreate(&s->handle), "cublasLtCreate", "starting cuBLASLt");
        if (status != TSR_OK) {
            tsr_release(cuda->context, s);
            return status;
        }
        cuda->gemms->station[index] = s;
    }
    *out = s;
    return TSR_OK;
}

/* A stream that is being captured records what is enqueued and does nothing yet, so memory that others use too cannot come from there. */
static tsr_status refuse_capture(tsr_stream stream)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    TSR_CUDA_TRY(cudaStreamIsCapturing(stream, &capture), "asking whether a stream is being captured");
    if (capture != cudaStreamCaptureStatusNone)
        return tsr_status_set(TSR_ERROR_STATE, "cuda device: the first GEMM on a stream allocates its workspace, which cannot be captured; "
                                               "run it once on this stream before the capture begins");
    return TSR_OK;
}

static tsr_status make_workspace(tsr_cuda *cuda, int index, station *s, tsr_stream stream, void **out)
{
    workspace *made;
    TSR_TRY(refuse_capture(stream));
    TSR_TRY(tsr_allocate(cuda->context, sizeof *made, (void **)&made));
    const tsr_status status = tsr_cuda_alloc(cuda, index, WORKSPACE_BYTES, NULL, &made->memory);
    if (status != TSR_OK) {
        tsr_release(cuda->context, made);
        return status;
    }
    made->stream = stream;
    made->next = s->workspaces;
    s->workspaces = made;
    *out = made->memory;
    return TSR_OK;
}

static tsr_status find_workspace(tsr_cuda *cuda, int index, station *s, tsr_stream stream, void **out)
{
    for (const workspace *w = s->workspaces; w; w = w->next)
        if (w->stream == stream) {
            *out = w->memory;
            return TSR_OK;
        }
    return make_workspace(cuda, index, s, stream, out);
}

static uint32_t alignment_of(const void *address)
{
    const uintptr_t bits = (uintptr_t)address | MOST_ALIGNED;
    return (uint32_t)(bits & (~bits + 1));
}

static problem problem_of(const tsr_cuda *cuda, const tsr_gemm *g)
{
    problem p;
    memset(&p, 0, sizeof p);
    p.m = g->m, p.n = g->n, p.k = g->k;
    p.lda = g->lda, p.ldb = g->ldb, p.ldc = g->ldc;
    p.dtype = (int32_t)g->dtype;
    p.trans_a = g->trans_a != 0, p.trans_b = g->trans_b != 0, p.reads_c = g->beta != 0;
    p.a_aligned = alignment_of(g->a), p.b_aligned = alignment_of(g->b), p.c_aligned = alignment_of(g->c);
    p.tf32 = cuda->tf32 && g->dtype == TSR_F32;
    return p;
}

/* A matrix that is stored in `rows` rows of `columns`, `ld` apart: columns of cuBLASLt. */
static tsr_status describe_matrix(cublasLtMatrixLayoutOpaque_t *out, cudaDataType_t type, int64_t rows, int64_t columns, int64_t ld)
{
    TSR_BLAS_TRY(cublasLtMatrixLayoutInit(out, type, (uint64_t)columns, (uint64_t)rows, ld), "describing a matrix");
    return TSR_OK;
}

static tsr_status set_transposed(operation *op, cublasLtMatmulDescAttributes_t attribute, int32_t transposed)
{
    const int32_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    TSR_BLAS_TRY(cublasLtMatmulDescSetAttribute(&op->matmul, attribute, &value, sizeof value), "describing a product");
    return TSR_OK;
}

static tsr_status describe(const problem *p, operation *op)
{
    const type_row *const t = &types[p->dtype];
    const cublasComputeType_t compute = p->tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : t->compute;
    TSR_BLAS_TRY(cublasLtMatmulDescInit(&op->matmul, compute, t->scale), "describing a product");
    TSR_TRY(set_transposed(op, CUBLASLT_MATMUL_DESC_TRANSA, p->trans_b));
    TSR_TRY(set_transposed(op, CUBLASLT_MATMUL_DESC_TRANSB, p->trans_a));
    TSR_TRY(describe_matrix(&op->left, t->type, p->trans_b ? p->n : p->k, p->trans_b ? p->k : p->n, p->ldb));
    TSR_TRY(describe_matrix(&op->right, t->type, p->trans_a ? p->k : p->m, p->trans_a ? p->m : p->k, p->lda));
    return describe_matrix(&op->result, t->type, p->m, p->n, p->ldc);
}

static tsr_status prefer(const problem *p, cublasLtMatmulPreferenceOpaque_t *preference)
{
    const size_t bytes = WORKSPACE_BYTES;
    const struct {
        cublasLtMatmulPreferenceAttributes_t attribute;
        const void *value;
        size_t bytes;
    } rows[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes},
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

static tsr_status choose(cublasLtHandle_t handle, const problem *p, operation *op, cublasLtMatmulAlgo_t *out)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found;
    int count = 0;
    TSR_TRY(prefer(p, &preference));
    TSR_BLAS_TRY(cublasLtMatmulAlgoGetHeuristic(handle, &op->matmul, &op->left, &op->right, &op->result, &op->result, &preference, 1,
                                                &found, &count),
                 "choosing an algorithm");
    if (count == 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "cuda device: cuBLASLt knows no algorithm for %s [%" PRId64 ",%" PRId64 "] x [%" PRId64 ",%" PRId64 "]",
                              tsr_dtype_name((tsr_dtype)p->dtype), p->m, p->k, p->k, p->n);
    *out = found.algo;
    return TSR_OK;
}

/* FNV-1a (Fowler, Noll and Vo). */
static size_t slot_of(const problem *p)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < sizeof *p; i++)
        hash = (hash ^ ((const unsigned char *)p)[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash >> 32) % CACHE_ENTRIES;
}

static tsr_status find_algorithm(station *s, const problem *p, operation *op, cublasLtMatmulAlgo_t *out)
{
    entry *const e = &s->cache[slot_of(p)];
    if (!e->used || memcmp(&e->key, p, sizeof *p) != 0) {
        cublasLtMatmulAlgo_t chosen;
        TSR_TRY(choose(s->handle, p, op, &chosen));
        *e = (entry){.used = true, .key = *p, .algorithm = chosen};
    }
    *out = e->algorithm;
    return TSR_OK;
}

/* All that is shared, under the lock; what comes out is the caller's. */
static tsr_status find_all(tsr_cuda *cuda, int index, const problem *p, operation *op, tsr_stream stream, cublasLtHandle_t *handle,
                           cublasLtMatmulAlgo_t *algorithm, void **memory)
{
    station *s;
    TSR_TRY(find_station(cuda, index, &s));
    *handle = s->handle;
    TSR_TRY(find_algorithm(s, p, op, algorithm));
    return find_workspace(cuda, index, s, stream, memory);
}

static tsr_status multiply(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    const problem p = problem_of(cuda, g);
    const float alpha = (float)g->alpha, beta = (float)g->beta;
    const bool wide = g->dtype == TSR_F64;
    cublasLtHandle_t handle;
    cublasLtMatmulAlgo_t algorithm;
    void *memory;
    operation op;
    TSR_TRY(describe(&p, &op));
    pthread_mutex_lock(&cuda->gemms->mutex);
    const tsr_status status = find_all(cuda, index, &p, &op, stream, &handle, &algorithm, &memory);
    pthread_mutex_unlock(&cuda->gemms->mutex);
    TSR_TRY(status);
    TSR_BLAS_TRY(cublasLtMatmul(handle, &op.matmul, wide ? (const void *)&g->alpha : &alpha, g->b, &op.left, g->a, &op.right,
                                wide ? (const void *)&g->beta : &beta, g->c, &op.result, g->c, &op.result, &algorithm, memory,
                                WORKSPACE_BYTES, stream),
                 "multiplying matrices");
    return TSR_OK;
}

static tsr_status check(const tsr_gemm *g)
{
    if ((unsigned)g->dtype >= TSR_DTYPE_END || !types[g->dtype].known)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "cuda device: no GEMM of %s; there are f64, f32, f16 and bf16",
                              tsr_dtype_name(g->dtype));
    if (g->m < 0 || g->n < 0 || g->k < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "cuda device: a GEMM of m=%" PRId64 ", n=%" PRId64 ", k=%" PRId64 "; sizes are at least 0", g->m, g->n, g->k);
    const int64_t a = g->trans_a ? g->m : g->k, b = g->trans_b ? g->k : g->n;
    if (g->lda < a || g->ldb < b || g->ldc < g->n)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "cuda device: lda, ldb, ldc are %" PRId64 ", %" PRId64 ", %" PRId64 "; rows have %" PRId64 ", %" PRId64
                              ", %" PRId64 " elements",
                              g->lda, g->ldb, g->ldc, a, b, g->n);
    return TSR_OK;
}

/* c = beta c, which is all that is left where nothing is added up. */
static tsr_status multiply_nothing(tsr_cuda *cuda, int index, const tsr_gemm *g, tsr_stream stream)
{
    const tsr_box_fill zero = {
        .dst = g->c, .element_bytes = tsr_dtype_bytes(g->dtype), .ndim = 2, .shape = {g->m, g->n}, .dst_strides = {g->ldc, 1}};
    if (g->beta == 1)
        return TSR_OK;
    if (g->beta != 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "cuda device: a GEMM of k=0 with beta %g; beta is 0 or 1 there", g->beta);
    return tsr_cuda_fill(cuda, index, &zero, stream);
}

tsr_status tsr_cuda_gemm(void *self, int index, const tsr_gemm *gemm, tsr_stream stream)
{
    int previous;
    TSR_TRY(check(gemm));
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const bool empty = gemm->m == 0 || gemm->n == 0;
    const tsr_status status = empty          ? TSR_OK
                              : gemm->k == 0 ? multiply_nothing(self, index, gemm, stream)
                                             : multiply(self, index, gemm, stream);
    tsr_cuda_leave(previous);
    return status;
}
