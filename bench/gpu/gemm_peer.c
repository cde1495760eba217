/*
 * Times the GEMM of the device's table in turns with cuBLASLt called directly, to show what the
 * library adds to a product.
 *
 * usage: gemm-peer DTYPE M N K TRANS_A TRANS_B SAMPLES CALLS
 *
 * Computes row-major c[M,N] = a b on GPU 0, of small numbers. A sample is CALLS products on one
 * stream, from an idle GPU until it is idle again. Prints one line of JSON: both times of a product
 * (median, minimum and maximum of SAMPLES), their ratio, and whether both results have the same
 * bits.
 */
#include <tessera/cuda.h>
#include <tessera/sys/device.h>

#include <cublasLt.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes: what NVIDIA's guide recommends for Hopper, and the most that the library asks for. */
#define WORKSPACE_BYTES ((size_t)32 << 20)
#define WARM_UPS        3

/* cuBLASLt's types for a dtype. */
typedef struct type_row {
    tsr_dtype dtype;
    cudaDataType_t type, scale;
    cublasComputeType_t compute;
} type_row;

static const type_row types[] = {
    {TSR_F64, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    {TSR_F32, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {TSR_F16, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {TSR_BF16, CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F},
};

/* The direct product. cuBLASLt is column-major, so it computes the transposes: c' = b' a'. */
typedef struct direct {
    cublasLtHandle_t handle;
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t left, right, result;
    cublasLtMatmulHeuristicResult_t found;
    void *workspace;
} direct;

typedef struct peer {
    tsr_device_driver *driver;
    const tsr_device_table *table;
    void *self;
    tsr_stream stream;
    const type_row *type;
    tsr_gemm gemm; /* the library's product; the direct product writes to `other` instead of c */
    void *other;
    direct direct;
    int samples, calls;
} peer;

typedef int product(peer *p);

static int fail(const char *what, int status)
{
    fprintf(stderr, "gemm-peer: %s: %d\n", what, status);
    return 1;
}

static int fail_status(void)
{
    fprintf(stderr, "gemm-peer: %s\n", tsr_status_message());
    return 1;
}

static int read_number(const char *text, int64_t least, int64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno == 0 && *end == '\0' && *text != '\0' && *out >= least && *out <= INT32_MAX)
        return 0;
    fprintf(stderr, "gemm-peer: '%s' is not a number from %d to 2^31-1\n", text, (int)least);
    return 2;
}

static int read_type(const char *text, peer *p)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(tsr_dtype_name(types[i].dtype), text) == 0) {
            p->type = &types[i];
            return 0;
        }
    fprintf(stderr, "gemm-peer: there are no products of '%s'; there are f64, f32, f16 and bf16\n", text);
    return 2;
}

static int read_arguments(char **argv, peer *p)
{
    static const int64_t least[] = {1, 1, 1, 0, 0, 1, 1};
    int64_t number[7];
    if (read_type(argv[1], p) != 0)
        return 2;
    for (int i = 0; i < 7; i++)
        if (read_number(argv[2 + i], least[i], &number[i]) != 0)
            return 2;
    p->gemm = (tsr_gemm){TSR_GEMM_OF(p->type->dtype), .m = number[0], .n = number[1], .k = number[2], .alpha = 1};
    p->gemm.trans_a = number[3] != 0;
    p->gemm.trans_b = number[4] != 0;
    p->gemm.lda = p->gemm.trans_a ? p->gemm.m : p->gemm.k;
    p->gemm.ldb = p->gemm.trans_b ? p->gemm.k : p->gemm.n;
    p->gemm.ldc = p->gemm.n;
    p->samples = (int)number[5];
    p->calls = (int)number[6];
    return 0;
}

static int allocate(peer *p, size_t bytes, void **out)
{
    return p->table->alloc(p->self, 0, bytes, NULL, out) == TSR_OK ? 0 : fail_status();
}

/* Makes a matrix of small numbers that are exact in every dtype. */
static int make_operand(peer *p, int64_t count, const void **out)
{
    const size_t bytes = (size_t)count * tsr_dtype_bytes(p->gemm.c_dtype);
    double *const values = malloc((size_t)count * sizeof *values);
    void *const host = malloc(bytes);
    void *self, *memory = NULL;
    const tsr_device_table *const convert = tsr_device_driver_table(NULL, &self);
    int failed = !values || !host ? fail("there is no memory on the host", 0) : allocate(p, bytes, &memory);
    *out = memory;
    for (int64_t i = 0; !failed && i < count; i++)
        values[i] = (double)(i * 37 % 101 - 50) / 64;
    if (!failed && (convert->convert(self, 0, host, p->gemm.c_dtype, values, TSR_F64, count, NULL) != TSR_OK ||
                    p->table->copy(p->self, 0, memory, host, bytes, TSR_COPY_FROM_HOST, p->stream) != TSR_OK ||
                    p->table->stream_synchronize(p->self, 0, p->stream) != TSR_OK))
        failed = fail_status();
    free(values);
    free(host);
    return failed;
}

static size_t result_bytes(const peer *p)
{
    return (size_t)p->gemm.m * (size_t)p->gemm.n * tsr_dtype_bytes(p->gemm.c_dtype);
}

static int make_operands(peer *p)
{
    tsr_gemm *const g = &p->gemm;
    if (p->table->stream_create(p->self, 0, &p->stream) != TSR_OK)
        return fail_status();
    if (make_operand(p, g->m * g->k, &g->a) != 0 || make_operand(p, g->k * g->n, &g->b) != 0)
        return 1;
    if (allocate(p, result_bytes(p), &g->c) != 0 || allocate(p, result_bytes(p), &p->other) != 0)
        return 1;
    if (p->table->gemm_workspace && p->table->gemm_workspace(p->self, 0, g, &g->workspace_bytes) != TSR_OK)
        return fail_status();
    if (g->workspace_bytes > 0 && allocate(p, g->workspace_bytes, &g->workspace) != 0)
        return 1;
    return allocate(p, WORKSPACE_BYTES, &p->direct.workspace);
}

/* Describes a matrix that is stored as `rows` rows of `columns` elements. */
static int describe_matrix(cublasLtMatrixLayout_t out, cudaDataType_t type, int64_t rows, int64_t columns)
{
    const int status = (int)cublasLtMatrixLayoutInit(out, type, (uint64_t)columns, (uint64_t)rows, columns);
    return status == 0 ? 0 : fail("cublasLtMatrixLayoutInit", status);
}

static int describe_product(peer *p)
{
    const tsr_gemm *const g = &p->gemm;
    direct *const d = &p->direct;
    const int32_t left = g->trans_b ? CUBLAS_OP_T : CUBLAS_OP_N, right = g->trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    int status = (int)cublasLtCreate(&d->handle);
    if (status == 0)
        status = (int)cublasLtMatmulDescInit(&d->product, p->type->compute, p->type->scale);
    if (status == 0)
        status = (int)cublasLtMatmulDescSetAttribute(&d->product, CUBLASLT_MATMUL_DESC_TRANSA, &left, sizeof left);
    if (status == 0)
        status = (int)cublasLtMatmulDescSetAttribute(&d->product, CUBLASLT_MATMUL_DESC_TRANSB, &right, sizeof right);
    if (status != 0)
        return fail("describing a product to cuBLASLt", status);
    if (describe_matrix(&d->left, p->type->type, g->trans_b ? g->n : g->k, g->trans_b ? g->k : g->n) != 0 ||
        describe_matrix(&d->right, p->type->type, g->trans_a ? g->k : g->m, g->trans_a ? g->m : g->k) != 0)
        return 1;
    return describe_matrix(&d->result, p->type->type, g->m, g->n);
}

static int choose_algorithm(peer *p)
{
    static const cublasLtMatmulPreferenceAttributes_t operands[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint64_t most = WORKSPACE_BYTES;
    const uint32_t aligned = 256;
    direct *const d = &p->direct;
    cublasLtMatmulPreferenceOpaque_t preference;
    int count = 0, status = (int)cublasLtMatmulPreferenceInit(&preference);
    if (status == 0)
        status = (int)cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                                           sizeof most);
    for (size_t i = 0; status == 0 && i < sizeof operands / sizeof *operands; i++)
        status = (int)cublasLtMatmulPreferenceSetAttribute(&preference, operands[i], &aligned, sizeof aligned);
    if (status == 0)
        status = (int)cublasLtMatmulAlgoGetHeuristic(d->handle, &d->product, &d->left, &d->right, &d->result,
                                                     &d->result, &preference, 1, &d->found, &count);
    return status == 0 && count == 1 ? 0 : fail("cuBLASLt chose no algorithm", status);
}

static int multiply_ours(peer *p)
{
    return p->table->gemm(p->self, 0, &p->gemm, p->stream) == TSR_OK ? 0 : fail_status();
}

static int multiply_direct(peer *p)
{
    const tsr_gemm *const g = &p->gemm;
    direct *const d = &p->direct;
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const int wide = g->c_dtype == TSR_F64;
    const int status =
        (int)cublasLtMatmul(d->handle, &d->product, wide ? (const void *)&wide_one : &one, g->b, &d->left, g->a,
                            &d->right, wide ? (const void *)&wide_zero : &zero, p->other, &d->result, p->other,
                            &d->result, &d->found.algo, d->workspace, WORKSPACE_BYTES, p->stream);
    return status == 0 ? 0 : fail("cublasLtMatmul", status);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int settle(peer *p)
{
    return p->table->stream_synchronize(p->self, 0, p->stream) == TSR_OK ? 0 : fail_status();
}

static int time_products(peer *p, product *multiply, double *seconds)
{
    const double start = now();
    for (int i = 0; i < p->calls; i++)
        if (multiply(p) != 0)
            return 1;
    if (settle(p) != 0)
        return 1;
    *seconds = (now() - start) / p->calls;
    return 0;
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Times both products in turns, so that other load slows both. */
static int measure(peer *p, double *ours, double *directly)
{
    double unused;
    for (int i = 0; i < WARM_UPS; i++)
        if (time_products(p, multiply_ours, &unused) != 0 || time_products(p, multiply_direct, &unused) != 0)
            return 1;
    for (int i = 0; i < p->samples; i++)
        if (time_products(p, multiply_ours, &ours[i]) != 0 || time_products(p, multiply_direct, &directly[i]) != 0)
            return 1;
    qsort(ours, (size_t)p->samples, sizeof *ours, compare_times);
    qsort(directly, (size_t)p->samples, sizeof *directly, compare_times);
    return 0;
}

static int same_bits(peer *p, int *same)
{
    const size_t bytes = result_bytes(p);
    char *const results = malloc(2 * bytes);
    if (!results)
        return fail("there is no memory on the host", 0);
    int failed = p->table->copy(p->self, 0, results, p->gemm.c, bytes, TSR_COPY_TO_HOST, p->stream) != TSR_OK ||
                 p->table->copy(p->self, 0, results + bytes, p->other, bytes, TSR_COPY_TO_HOST, p->stream) != TSR_OK;
    failed = failed ? fail_status() : settle(p);
    *same = memcmp(results, results + bytes, bytes) == 0;
    free(results);
    return failed;
}

static void print_spread(const char *name, const double *sorted, int count)
{
    printf("\"%s\": {\"median\": %.9g, \"min\": %.9g, \"max\": %.9g}, ", name,
           (sorted[(count - 1) / 2] + sorted[count / 2]) / 2, sorted[0], sorted[count - 1]);
}

static int report(peer *p, const double *ours, const double *directly)
{
    const tsr_gemm *const g = &p->gemm;
    const int n = p->samples;
    const double our_median = (ours[(n - 1) / 2] + ours[n / 2]) / 2,
                 direct_median = (directly[(n - 1) / 2] + directly[n / 2]) / 2;
    int same;
    if (same_bits(p, &same) != 0)
        return 1;
    printf("{\"bench\": \"gemm\", \"device\": \"cuda\", \"dtype\": \"%s\", \"m\": %lld, \"n\": %lld, \"k\": %lld, "
           "\"trans_a\": %d, "
           "\"trans_b\": %d, ",
           tsr_dtype_name(g->c_dtype), (long long)g->m, (long long)g->n, (long long)g->k, g->trans_a, g->trans_b);
    print_spread("seconds", ours, n);
    print_spread("direct_seconds", directly, n);
    printf("\"of_direct\": %.6g, \"flops\": %.6g, \"same_bits\": %s, \"samples\": %d, \"calls\": %d}\n",
           direct_median / our_median, 2.0 * (double)g->m * (double)g->n * (double)g->k / our_median,
           same ? "true" : "false", n, p->calls);
    return 0;
}

static int run(peer *p)
{
    double *const times = calloc(2 * (size_t)p->samples, sizeof *times);
    if (!times)
        return fail("there is no memory on the host", 0);
    int failed = make_operands(p);
    if (!failed)
        failed = describe_product(p);
    if (!failed)
        failed = choose_algorithm(p);
    if (!failed)
        failed = measure(p, times, times + p->samples);
    if (!failed)
        failed = report(p, times, times + p->samples);
    free(times);
    return failed;
}

static void finish(peer *p)
{
    const tsr_gemm *const g = &p->gemm;
    const void *const memory[] = {g->a, g->b, g->c, p->other, g->workspace, p->direct.workspace};
    if (p->direct.handle)
        cublasLtDestroy(p->direct.handle);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (memory[i])
            p->table->free(p->self, 0, (void *)memory[i], 0, NULL);
    if (p->stream)
        p->table->stream_destroy(p->self, 0, p->stream);
    tsr_device_driver_destroy(p->driver);
}

int main(int argc, char **argv)
{
    peer p = {.samples = 0};
    if (argc != 9) {
        fprintf(stderr, "usage: gemm-peer DTYPE M N K TRANS_A TRANS_B SAMPLES CALLS\n");
        return 2;
    }
    if (read_arguments(argv, &p) != 0)
        return 2;
    if (tsr_cuda_driver_create(NULL, NULL, &p.driver) != TSR_OK)
        return fail_status();
    p.table = tsr_device_driver_table(p.driver, &p.self);
    const int failed = run(&p);
    finish(&p);
    return failed;
}
