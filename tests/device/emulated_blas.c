/* cuBLASLt by its guide: column-major matrices, descriptions that the caller keeps, and an
 * algorithm that must have been chosen for them. */
#include "device/cuda/cublaslt.h"
#include "device/cuda/runtime.h"
#include "emulated_gpu.h"
#include "reference.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE, ROWS, COLUMNS, LD };                               /* words of a matrix layout */
enum { COMPUTE, SCALE, TRANS_A, TRANS_B, EPILOGUE, DESCRIBED }; /* words of a product's description */
enum { BIAS = DESCRIBED }; /* word with the address of the bias, of which only the alignment matters */
enum { WORKSPACE, A_ALIGNED, B_ALIGNED, C_ALIGNED, ALL };                    /* words of a preference */
enum { DESCRIPTION, NEEDED, ALIGNED_A, ALIGNED_B, ALIGNED_C, ALIGNED_BIAS }; /* words of an algorithm */

/* The workspace of the preferred algorithm for products of depth DEEP, unless the preference allows
 * less; and its alignment. */
enum { LIKED_WORKSPACE = 4096, DEEP = 3, WORKSPACE_ALIGNMENT = 256 };

/* Sizes of square products: for the first there is no algorithm, for the second one that cannot
 * run. */
enum { UNANSWERED = 13, UNUSABLE = 14 };

struct cublasLtContext {
    int device;
};

static atomic_int searches;

static void misuse(const char *what)
{
    fprintf(stderr, "emulated cuBLASLt: %s\n", what);
    abort();
}

#define TURN_OF(name)                                                                                                  \
    do {                                                                                                               \
        if (emulated_blas_call(name))                                                                                  \
            return CUBLAS_STATUS_INTERNAL_ERROR;                                                                       \
    } while (0)
#define TURN() TURN_OF(__func__)

int emulated_searches(void)
{
    return searches;
}

const char *cublasLtGetStatusName(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_INTERNAL_ERROR ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_NOT_SUPPORTED";
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    (void)status;
    return "emulated";
}

size_t cublasLtGetVersion(void)
{
    return 130002;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    TURN();
    cublasLtHandle_t made = malloc(sizeof *made);
    (void)cudaGetDevice(&made->device);
    emulated_count(1);
    *handle = made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    emulated_count(-1);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type,
                                                 uint64_t rows, uint64_t columns, int64_t ld)
{
    TURN_OF("cublasLtMatrixLayoutInit");
    if (size != sizeof *layout || ld < (int64_t)rows)
        misuse("cublasLtMatrixLayoutInit: columns that overlap");
    memset(layout, 0, size);
    layout->data[TYPE] = (uint64_t)type;
    layout->data[ROWS] = rows;
    layout->data[COLUMNS] = columns;
    layout->data[LD] = (uint64_t)ld;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t size, cublasComputeType_t compute,
                                               cudaDataType_t scale)
{
    TURN_OF("cublasLtMatmulDescInit");
    memset(product, 0, size);
    product->data[COMPUTE] = (uint64_t)compute;
    product->data[SCALE] = (uint64_t)scale;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    TURN();
    int32_t given;
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER && size == sizeof(void *)) {
        memcpy(&product->data[BIAS], value, size);
        return CUBLAS_STATUS_SUCCESS;
    }
    const int word = attribute == CUBLASLT_MATMUL_DESC_TRANSA     ? TRANS_A
                     : attribute == CUBLASLT_MATMUL_DESC_TRANSB   ? TRANS_B
                     : attribute == CUBLASLT_MATMUL_DESC_EPILOGUE ? EPILOGUE
                                                                  : -1;
    if (size != sizeof given || word < 0)
        misuse("cublasLtMatmulDescSetAttribute: not known here");
    memcpy(&given, value, size);
    if (word == EPILOGUE && given != CUBLASLT_EPILOGUE_BIAS)
        misuse("cublasLtMatmulDescSetAttribute: an epilogue that is not known here");
    product->data[word] = word == EPILOGUE ? 1 : given == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size)
{
    TURN_OF("cublasLtMatmulPreferenceInit");
    memset(preference, 0, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size)
{
    TURN();
    uint32_t given = 0;
    uint64_t bytes = 0;
    memcpy(size == sizeof bytes ? (void *)&bytes : &given, value, size);
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        preference->data[WORKSPACE] = bytes;
        break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        preference->data[A_ALIGNED] = given;
        break;
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        preference->data[B_ALIGNED] = given;
        break;
    default:
        preference->data[C_ALIGNED] = given;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static uint64_t describe(const uint64_t *product, const uint64_t *a, const uint64_t *b, const uint64_t *c)
{
    uint64_t hash = product[EPILOGUE];
    for (int i = 0; i < 4; i++)
        hash = ((hash * 31 + product[i]) * 31 + a[i]) * 31 + b[i] + 7 * c[i];
    return hash;
}

static uint64_t depth_of(const uint64_t *product, const uint64_t *a)
{
    return product[TRANS_A] ? a[ROWS] : a[COLUMNS];
}

static bool is_square(const uint64_t *a, uint64_t size)
{
    return a[ROWS] == size && a[COLUMNS] == size;
}

/* The alignment of the address of a bias, the only property that the heuristics use. */
static uint64_t promised(uint64_t address)
{
    return address & (~address + 1);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *found, int *count)
{
    TURN();
    if (!handle || c != d || wanted != 1)
        misuse("cublasLtMatmulAlgoGetHeuristic: not known here");
    if (product->data[EPILOGUE] && !product->data[BIAS])
        misuse("cublasLtMatmulAlgoGetHeuristic: the epilogue of a bias without one");
    searches++;
    /* Products in f64 have no epilogues. */
    if (product->data[EPILOGUE] && c->data[TYPE] == CUDA_R_64F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(found, 0, sizeof *found);
    found->state = is_square(a->data, UNUSABLE) ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    const int deep = depth_of(product->data, a->data) >= DEEP && preference->data[WORKSPACE] >= LIKED_WORKSPACE;
    found->workspaceSize = deep ? LIKED_WORKSPACE : 0;
    found->algo.data[DESCRIPTION] = describe(product->data, a->data, b->data, c->data);
    found->algo.data[NEEDED] = found->workspaceSize;
    for (int i = 0; i < 3; i++)
        found->algo.data[ALIGNED_A + i] = preference->data[A_ALIGNED + i];
    found->algo.data[ALIGNED_BIAS] = product->data[EPILOGUE] ? promised(product->data[BIAS]) : 0;
    *count = !is_square(a->data, UNANSWERED);
    return CUBLAS_STATUS_SUCCESS;
}

static tsr_dtype dtype_of(uint64_t type)
{
    return type == CUDA_R_64F ? TSR_F64 : type == CUDA_R_32F ? TSR_F32 : type == CUDA_R_16F ? TSR_F16 : TSR_BF16;
}

/* Rounds to 10 bits of mantissa, as tensor cores do with an f32 in TF32. */
static double shortened(double value)
{
    float single = (float)value;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
    memcpy(&single, &bits, sizeof bits);
    return (double)single;
}

/* Element (row, column) of op(matrix), transposed if `trans`. */
static double element(const uint64_t *layout, const void *memory, uint64_t trans, uint64_t row, uint64_t column)
{
    const uint64_t at = trans ? column + row * layout[LD] : row + column * layout[LD];
    const tsr_dtype dtype = dtype_of(layout[TYPE]);
    return reference_load(dtype, (const char *)memory + at * tsr_dtype_bytes(dtype));
}

static void check_use(const cublasLtMatmulAlgo_t *algorithm, const uint64_t *product, const uint64_t *a,
                      const uint64_t *b, const uint64_t *c, uintptr_t at_a, uintptr_t at_b, uintptr_t at_c)
{
    const uint64_t depth = depth_of(product, a);
    const int wide = c[TYPE] == CUDA_R_64F;
    if (algorithm->data[DESCRIPTION] != describe(product, a, b, c))
        misuse("cublasLtMatmul: an algorithm of another product");
    if (at_a % algorithm->data[ALIGNED_A] || at_b % algorithm->data[ALIGNED_B] || at_c % algorithm->data[ALIGNED_C] ||
        (product[EPILOGUE] && (!product[BIAS] || product[BIAS] % algorithm->data[ALIGNED_BIAS])))
        misuse("cublasLtMatmul: operands are aligned less than was said");
    if (depth != (product[TRANS_B] ? b[COLUMNS] : b[ROWS]) || c[ROWS] != (product[TRANS_A] ? a[COLUMNS] : a[ROWS]) ||
        c[COLUMNS] != (product[TRANS_B] ? b[ROWS] : b[COLUMNS]))
        misuse("cublasLtMatmul: shapes that do not fit");
    if (wide != (product[COMPUTE] == CUBLAS_COMPUTE_64F) || wide != (product[SCALE] == CUDA_R_64F))
        misuse("cublasLtMatmul: computed in a type that is not the operands'");
}

static double scalar(const uint64_t *product, const void *value)
{
    double wide;
    float single;
    if (product[SCALE] == CUDA_R_64F)
        memcpy(&wide, value, sizeof wide);
    else
        memcpy(&single, value, sizeof single), wide = (double)single;
    return wide;
}

static void check_workspace(const cublasLtMatmulAlgo_t *algorithm, const void *workspace, size_t bytes)
{
    const uint64_t needed = algorithm->data[NEEDED];
    if (needed > 0 && (!workspace || bytes < needed || (uintptr_t)workspace % WORKSPACE_ALIGNMENT))
        misuse("cublasLtMatmul: less workspace than the algorithm takes, or not aligned");
}

static double factor(const uint64_t *product, double value)
{
    return product[COMPUTE] == CUBLAS_COMPUTE_32F_FAST_TF32 ? shortened(value) : value;
}

/* An enqueued product, with copies of descriptions and scalars, which are the caller's again after
 * the call. */
typedef struct enqueued_product {
    uint64_t product[DESCRIBED + 1], a_layout[4], b_layout[4], c_layout[4];
    const void *a, *b;
    void *c, *workspace;
    size_t workspace_bytes;
    double times, keep;
} enqueued_product;

/* Computes c = times * a b + keep * c + bias, with one element of the bias for each row, rounded
 * once. Overwrites the workspace, as a real product would. */
static void compute(const void *argument)
{
    const enqueued_product *const p = argument;
    const uint64_t *const lc = p->c_layout, depth = depth_of(p->product, p->a_layout);
    const tsr_dtype dtype = dtype_of(lc[TYPE]);
    const size_t bytes = tsr_dtype_bytes(dtype);
    const char *const bias = (const char *)(uintptr_t)(p->product[EPILOGUE] ? p->product[BIAS] : 0);
    if (p->workspace_bytes > 0)
        memset(p->workspace, 0xa5, p->workspace_bytes);
    for (uint64_t column = 0; column < lc[COLUMNS]; column++)
        for (uint64_t row = 0; row < lc[ROWS]; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < depth; k++)
                sum += factor(p->product, element(p->a_layout, p->a, p->product[TRANS_A], row, k)) *
                       factor(p->product, element(p->b_layout, p->b, p->product[TRANS_B], k, column));
            sum = p->times * sum + (p->keep == 0 ? 0 : p->keep * element(lc, p->c, 0, row, column));
            sum += bias ? reference_load(dtype, bias + row * bytes) : 0;
            reference_store(dtype, sum, (char *)p->c + (row + column * lc[LD]) * bytes);
        }
}

static void copy_words(uint64_t *to, const uint64_t *from, size_t count)
{
    memcpy(to, from, count * sizeof *to);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                              const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t bytes, cudaStream_t stream)
{
    TURN();
    enqueued_product p = {.a = a,
                          .b = b,
                          .c = d,
                          .workspace = workspace,
                          .workspace_bytes = algorithm->data[NEEDED],
                          .times = scalar(product->data, alpha),
                          .keep = scalar(product->data, beta)};
    (void)d_layout;
    if (!handle || c != d)
        misuse("cublasLtMatmul: not in place");
    copy_words(p.product, product->data, DESCRIBED + 1);
    copy_words(p.a_layout, a_layout->data, 4);
    copy_words(p.b_layout, b_layout->data, 4);
    copy_words(p.c_layout, c_layout->data, 4);
    check_workspace(algorithm, workspace, bytes);
    check_use(algorithm, p.product, p.a_layout, p.b_layout, p.c_layout, (uintptr_t)a, (uintptr_t)b, (uintptr_t)c);
    return emulated_enqueue(stream, compute, &p, sizeof p) ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
