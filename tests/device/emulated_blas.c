/* cuBLASLt as its guide describes it: columns, descriptions that the caller keeps, an algorithm that must be the one chosen for them. */
#include "device/cuda/blas.h"
#include "device/cuda/runtime.h"
#include "emulated_gpu.h"
#include "reference.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE, ROWS, COLUMNS, LD };                         /* words of a layout */
enum { COMPUTE, SCALE, TRANS_A, TRANS_B };                /* of a product */
enum { WORKSPACE, A_ALIGNED, B_ALIGNED, C_ALIGNED, ALL }; /* of a preference; an algorithm remembers those after its description */

struct cublasLtContext {
    int device;
};

static int searches;

static void misuse(const char *what)
{
    fprintf(stderr, "emulated cuBLASLt: %s\n", what);
    abort();
}

#define TURN_OF(name)                                                                                                                      \
    do {                                                                                                                                   \
        if (emulated_blas_call(name))                                                                                                      \
            return CUBLAS_STATUS_INTERNAL_ERROR;                                                                                           \
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

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t layout, size_t size, cudaDataType type, uint64_t rows,
                                                 uint64_t columns, int64_t ld)
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

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t product, size_t size, cublasComputeType_t compute, cudaDataType_t scale)
{
    TURN_OF("cublasLtMatmulDescInit");
    memset(product, 0, size);
    product->data[COMPUTE] = (uint64_t)compute;
    product->data[SCALE] = (uint64_t)scale;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t attribute, const void *value,
                                              size_t size)
{
    TURN();
    int32_t given;
    if (size != sizeof given || (attribute != CUBLASLT_MATMUL_DESC_TRANSA && attribute != CUBLASLT_MATMUL_DESC_TRANSB))
        misuse("cublasLtMatmulDescSetAttribute: not known here");
    memcpy(&given, value, size);
    product->data[attribute == CUBLASLT_MATMUL_DESC_TRANSA ? TRANS_A : TRANS_B] = given == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t preference, size_t size)
{
    TURN_OF("cublasLtMatmulPreferenceInit");
    memset(preference, 0, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *value, size_t size)
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
    uint64_t hash = 1;
    for (int i = 0; i < 4; i++)
        hash = ((hash * 31 + product[i]) * 31 + a[i]) * 31 + b[i] + 7 * c[i];
    return hash;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t *found,
                                              int *count)
{
    TURN();
    if (!handle || c != d || wanted != 1)
        misuse("cublasLtMatmulAlgoGetHeuristic: not known here");
    memset(found, 0, sizeof *found);
    found->algo.data[0] = describe(product->data, a->data, b->data, c->data);
    for (int i = WORKSPACE; i < ALL; i++)
        found->algo.data[1 + i] = preference->data[i];
    searches++;
    *count = a->data[COLUMNS] != 13 || a->data[ROWS] != 13;
    return CUBLAS_STATUS_SUCCESS;
}

static tsr_dtype dtype_of(uint64_t type)
{
    return type == CUDA_R_64F ? TSR_F64 : type == CUDA_R_32F ? TSR_F32 : type == CUDA_R_16F ? TSR_F16 : TSR_BF16;
}

/* Element (row, column) of a matrix as it is used: transposed where `trans` says. */
static double element(const uint64_t *layout, const void *memory, uint64_t trans, uint64_t row, uint64_t column)
{
    const uint64_t at = trans ? column + row * layout[LD] : row + column * layout[LD];
    const tsr_dtype dtype = dtype_of(layout[TYPE]);
    return reference_load(dtype, (const char *)memory + at * tsr_dtype_bytes(dtype));
}

static void check_use(const cublasLtMatmulAlgo_t *algorithm, const uint64_t *product, const uint64_t *a, const uint64_t *b,
                      const uint64_t *c, uintptr_t at_a, uintptr_t at_b, uintptr_t at_c)
{
    const uint64_t depth = product[TRANS_A] ? a[ROWS] : a[COLUMNS];
    const int wide = c[TYPE] == CUDA_R_64F;
    if (algorithm->data[0] != describe(product, a, b, c))
        misuse("cublasLtMatmul: an algorithm of another product");
    if (at_a % algorithm->data[1 + A_ALIGNED] || at_b % algorithm->data[1 + B_ALIGNED] || at_c % algorithm->data[1 + C_ALIGNED])
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

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product, const void *alpha, const void *a,
                              cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t c_layout, void *d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t bytes, cudaStream_t stream)
{
    TURN();
    const uint64_t *const la = a_layout->data, *const lb = b_layout->data, *const lc = c_layout->data;
    const uint64_t depth = product->data[TRANS_A] ? la[ROWS] : la[COLUMNS];
    const double times = scalar(product->data, alpha), keep = scalar(product->data, beta);
    const tsr_dtype dtype = dtype_of(lc[TYPE]);
    (void)stream, (void)d_layout;
    if (!handle || c != d || !workspace || bytes < algorithm->data[1 + WORKSPACE])
        misuse("cublasLtMatmul: no workspace, or not in place");
    check_use(algorithm, product->data, la, lb, lc, (uintptr_t)a, (uintptr_t)b, (uintptr_t)c);
    for (uint64_t column = 0; column < lc[COLUMNS]; column++)
        for (uint64_t row = 0; row < lc[ROWS]; row++) {
            double sum = 0;
            for (uint64_t k = 0; k < depth; k++)
                sum += element(la, a, product->data[TRANS_A], row, k) * element(lb, b, product->data[TRANS_B], k, column);
            sum = times * sum + (keep == 0 ? 0 : keep * element(lc, c, 0, row, column));
            reference_store(dtype, sum, (char *)d + (row + column * lc[LD]) * tsr_dtype_bytes(dtype));
        }
    return CUBLAS_STATUS_SUCCESS;
}
