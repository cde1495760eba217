#include "ops/gemm.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* Up to this many rows of c, reading b once by panels that stay in the cache, a vector at a time, beats a BLAS' gemm, which packs b. */
#define MAX_VECTOR_ROWS 7
#define PANEL_BYTES     ((int64_t)128 << 10)
#define PANEL_MULTIPLE  8

/* A row of the dtypes that the host multiplies. */
typedef struct blas {
    tsr_dtype dtype;
    int64_t bytes;
} blas;

static const blas kinds[] = {{TSR_F32, 4}, {TSR_F64, 8}};

static const blas *find_blas(tsr_dtype dtype)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (kinds[i].dtype == dtype)
            return &kinds[i];
    }
    return NULL;
}

/* What multiplies matrices by vectors in a provider, or NULL. */
typedef tsr_status gemv_function(void *self, const tsr_blas_gemv *gemv);

static gemv_function *find_gemv(const tsr_blas_provider *provider, tsr_dtype dtype)
{
    return dtype == TSR_F32 ? provider->table->gemv_f32 : provider->table->gemv_f64;
}

static tsr_status multiply(const tsr_blas_provider *provider, const tsr_gemm *g)
{
    const tsr_blas_gemm product = {.trans_a = g->trans_a,
                                   .trans_b = g->trans_b,
                                   .m = g->m,
                                   .n = g->n,
                                   .k = g->k,
                                   .alpha = g->alpha,
                                   .beta = g->beta,
                                   .a = g->a,
                                   .b = g->b,
                                   .c = g->c,
                                   .lda = g->lda,
                                   .ldb = g->ldb,
                                   .ldc = g->ldc};
    return tsr_blas_find_gemm(provider->table, g->dtype)(provider->self, &product);
}

/* The rows of b as it is stored make a panel, so that every row of c reads it from the cache but the first. Stored [n,k], a panel gives
 * columns of c of its own; stored [k,n], it adds its terms to all of c. */
static tsr_status multiply_by_vectors(const tsr_blas_provider *provider, const blas *kind, const tsr_gemm *g)
{
    gemv_function *const gemv = find_gemv(provider, g->dtype);
    const int64_t rows = g->trans_b ? g->n : g->k, cols = g->trans_b ? g->k : g->n;
    const int64_t fitting = PANEL_BYTES / (cols * kind->bytes) / PANEL_MULTIPLE * PANEL_MULTIPLE;
    const int64_t panel = g->m == 1 ? rows : fitting > PANEL_MULTIPLE ? fitting : PANEL_MULTIPLE;
    const int64_t row_step = g->trans_a ? 1 : g->lda, x_stride = g->trans_a ? g->lda : 1;
    for (int64_t begin = 0; begin < rows; begin += panel) {
        const int64_t count = rows - begin < panel ? rows - begin : panel;
        const char *matrix = (const char *)g->b + begin * g->ldb * kind->bytes;
        const int64_t x_offset = g->trans_b ? 0 : begin * x_stride, y_offset = g->trans_b ? begin : 0;
        const double beta = g->trans_b || begin == 0 ? g->beta : 1;
        for (int64_t i = 0; i < g->m; i++) {
            const tsr_blas_gemv product = {.trans = !g->trans_b,
                                           .rows = count,
                                           .cols = cols,
                                           .alpha = g->alpha,
                                           .beta = beta,
                                           .matrix = matrix,
                                           .x = (const char *)g->a + (i * row_step + x_offset) * kind->bytes,
                                           .y = (char *)g->c + (i * g->ldc + y_offset) * kind->bytes,
                                           .ld = g->ldb,
                                           .x_stride = x_stride};
            TSR_TRY(gemv(provider->self, &product));
        }
    }
    return TSR_OK;
}

/* Every row of c becomes the bias, to which the product is then added. */
static void start_from_bias(const blas *kind, const tsr_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        memcpy((char *)g->c + i * g->ldc * kind->bytes, g->bias, (size_t)(g->n * kind->bytes));
}

static tsr_status run_on_host(const tsr_choice *choice, const tsr_gemm *g)
{
    const blas *kind = find_blas(g->dtype);
    const tsr_blas_provider *provider = kind ? tsr_choice_find(choice, g->dtype) : NULL;
    if (kind && !provider)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "gemm of %s: no BLAS that all ranks have multiplies it", tsr_dtype_name(g->dtype));
    if (!kind)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "gemm of %s: the host multiplies f32 and f64", tsr_dtype_name(g->dtype));
    const int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] > INT_MAX)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "gemm m=%lld n=%lld k=%lld with rows %lld, %lld and %lld apart: BLAS takes up to %d", (long long)g->m,
                                  (long long)g->n, (long long)g->k, (long long)g->lda, (long long)g->ldb, (long long)g->ldc, INT_MAX);
    }
    tsr_gemm sum = *g;
    if (g->bias) {
        start_from_bias(kind, g);
        sum.beta = 1;
    }
    const int token = tsr_provider_begin(provider);
    const bool by_vectors = g->m <= MAX_VECTOR_ROWS && g->n > 0 && g->k > 0 && find_gemv(provider, g->dtype);
    const tsr_status status = by_vectors ? multiply_by_vectors(provider, kind, &sum) : multiply(provider, &sum);
    tsr_provider_end(provider, token);
    return status;
}

tsr_status tsr_gemm_run(tsr_device device, const tsr_choice *choice, const tsr_gemm *gemm, tsr_stream stream)
{
    if (!device.driver)
        return run_on_host(choice, gemm);
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    return table->gemm(self, device.index, gemm, stream);
}

tsr_status tsr_gemm_workspace(tsr_device device, const tsr_gemm *gemm, size_t *bytes)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    *bytes = 0;
    return device.driver && table->gemm_workspace ? table->gemm_workspace(self, device.index, gemm, bytes) : TSR_OK;
}

/* A device is asked by a product of nothing, which it need not search an algorithm for. */
tsr_status tsr_gemm_supported(const char *caller, tsr_device device, tsr_dtype dtype)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    const tsr_gemm nothing = {.dtype = dtype};
    size_t bytes;
    if (device.driver && !table->gemm)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: device \"%s\" has no gemm; move the tensors to the host or give its table one",
                              caller, table->name);
    if (device.driver)
        return tsr_gemm_workspace(device, &nothing, &bytes);
    if (device.index != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: device is host:%d, but there is one host, with index 0", caller, device.index);
    if (find_blas(dtype))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: the operands are %s; on the host linear layers are computed in f32 and f64", caller,
                          tsr_dtype_name(dtype));
}
