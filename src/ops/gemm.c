#include "ops/gemm.h"

#include "ops/rows.h"
#include "ops/widened.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

/* In f64 and with at most this many rows of c, products of vectors with panels of b that stay in
 * the cache are faster than a BLAS' gemm, which packs b. */
#define MAX_VECTOR_ROWS TSR_ROWS_MOST
#define PANEL_BYTES     ((int64_t)128 << 10)
#define PANEL_MULTIPLE  8
#define BYTES           ((int64_t)sizeof(double))

static tsr_status multiply_by_gemm(const tsr_blas_provider *provider, tsr_dtype dtype, const tsr_gemm *g)
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
    return tsr_blas_find_gemm(provider->table, dtype)(provider->self, &product);
}

static tsr_status multiply_f32(const void *provider, const tsr_gemm *g)
{
    return multiply_by_gemm(provider, TSR_F32, g);
}

/* A panel is some stored rows of b; the first row of c brings it into the cache for the others. If
 * b is stored [n,k], a panel makes some columns of c; if [k,n], it adds some terms to all of c. */
static tsr_status multiply_by_vectors(const tsr_blas_provider *provider, const tsr_gemm *g)
{
    const int64_t rows = g->trans_b ? g->n : g->k, cols = g->trans_b ? g->k : g->n;
    const int64_t fitting = PANEL_BYTES / (cols * BYTES) / PANEL_MULTIPLE * PANEL_MULTIPLE;
    const int64_t panel = g->m == 1 ? rows : fitting > PANEL_MULTIPLE ? fitting : PANEL_MULTIPLE;
    const int64_t row_step = g->trans_a ? 1 : g->lda, x_stride = g->trans_a ? g->lda : 1;
    for (int64_t begin = 0; begin < rows; begin += panel) {
        const int64_t count = rows - begin < panel ? rows - begin : panel;
        const char *matrix = (const char *)g->b + begin * g->ldb * BYTES;
        const int64_t x_offset = g->trans_b ? 0 : begin * x_stride, y_offset = g->trans_b ? begin : 0;
        const double beta = g->trans_b || begin == 0 ? g->beta : 1;
        for (int64_t i = 0; i < g->m; i++) {
            const tsr_blas_gemv product = {.trans = !g->trans_b,
                                           .rows = count,
                                           .cols = cols,
                                           .alpha = g->alpha,
                                           .beta = beta,
                                           .matrix = matrix,
                                           .x = (const char *)g->a + (i * row_step + x_offset) * BYTES,
                                           .y = (char *)g->c + (i * g->ldc + y_offset) * BYTES,
                                           .ld = g->ldb,
                                           .x_stride = x_stride};
            TSR_TRY(provider->table->gemv_f64(provider->self, &product));
        }
    }
    return TSR_OK;
}

/* Sets every row of c to the bias, to which the product is then added. */
static void start_from_bias(const tsr_gemm *g)
{
    const size_t bytes = tsr_dtype_bytes(g->c_dtype);
    for (int64_t i = 0; i < g->m; i++)
        memcpy((char *)g->c + (size_t)(i * g->ldc) * bytes, g->bias, (size_t)g->n * bytes);
}

/* A product that the provider computes without widening the operands. The bias has c's dtype. */
static tsr_status run_in_blas(const tsr_blas_provider *provider, const tsr_gemm *g)
{
    const bool by_vectors =
        g->b_dtype == TSR_F64 && g->m <= MAX_VECTOR_ROWS && g->n > 0 && g->k > 0 && provider->table->gemv_f64;
    tsr_gemm sum = *g;
    if (g->bias) {
        start_from_bias(g);
        sum.beta = 1;
    }
    return by_vectors ? multiply_by_vectors(provider, &sum) : multiply_by_gemm(provider, g->b_dtype, &sum);
}

/* How the host computes a product. */
typedef enum way { BY_ROWS, WIDENED, IN_BLAS, NO_WAY } way;

static way way_of(const tsr_gemm *g)
{
    if (tsr_rows_takes(g))
        return BY_ROWS;
    if (tsr_widened_takes(g))
        return WIDENED;
    const bool uniform =
        g->a_dtype == g->b_dtype && g->b_dtype == g->c_dtype && (!g->bias || g->bias_dtype == g->c_dtype);
    return uniform && (g->c_dtype == TSR_F32 || g->c_dtype == TSR_F64) ? IN_BLAS : NO_WAY;
}

/* TSR_ERROR_UNSUPPORTED: a size does not fit BLAS' 32-bit integers. */
static tsr_status check_sizes(const tsr_gemm *g)
{
    const int64_t sizes[] = {g->m, g->n, g->k, g->lda, g->ldb, g->ldc};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (sizes[i] > INT_MAX)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "gemm m=%lld n=%lld k=%lld with rows %lld, %lld and %lld apart: BLAS takes up to %d",
                                  (long long)g->m, (long long)g->n, (long long)g->k, (long long)g->lda,
                                  (long long)g->ldb, (long long)g->ldc, INT_MAX);
    }
    return TSR_OK;
}

static size_t host_workspace(const tsr_gemm *g)
{
    const way w = way_of(g);
    return w == BY_ROWS ? tsr_rows_workspace(g) : w == WIDENED ? tsr_widened_workspace(g) : 0;
}

/* The provider that multiplies bf16 by bf16 without widening them, with sums in f32; NULL: they
 * must be widened. */
static const tsr_blas_provider *find_narrow(const tsr_choice *choice, const tsr_gemm *g)
{
    const bool takes = g->a_dtype == TSR_BF16 && g->b_dtype == TSR_BF16 && g->c_dtype == TSR_F32 && g->alpha == 1 &&
                       (g->bias ? g->bias_dtype == TSR_F32 : g->beta == 0 || g->beta == 1);
    return takes ? tsr_choice_find(choice, TSR_BF16) : NULL;
}

static tsr_status run_by_provider(const tsr_choice *choice, const tsr_gemm *g, bool widens)
{
    const tsr_blas_provider *const narrow = widens ? find_narrow(choice, g) : NULL;
    const tsr_dtype dtype = widens ? TSR_F32 : g->c_dtype;
    const tsr_blas_provider *const provider = narrow ? narrow : tsr_choice_find(choice, dtype);
    if (!provider)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "gemm of %s: no BLAS that all ranks have multiplies it",
                              tsr_dtype_name(dtype));
    const int token = tsr_provider_begin(provider);
    const tsr_status status = widens && !narrow ? tsr_widened_run(multiply_f32, provider, g) : run_in_blas(provider, g);
    tsr_provider_end(provider, token);
    return status;
}

static tsr_status run_on_host(const tsr_choice *choice, const tsr_gemm *g)
{
    const way w = way_of(g);
    if (w == NO_WAY)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "gemm of %s and %s to %s: the host multiplies f64, or f32, f16 and bf16",
                              tsr_dtype_name(g->a_dtype), tsr_dtype_name(g->b_dtype), tsr_dtype_name(g->c_dtype));
    if (g->workspace_bytes < host_workspace(g))
        return tsr_status_set(TSR_ERROR_INTERNAL,
                              "gemm m=%lld n=%lld k=%lld: a workspace of %zu bytes is given, but the host wants %zu",
                              (long long)g->m, (long long)g->n, (long long)g->k, g->workspace_bytes, host_workspace(g));
    if (w == BY_ROWS)
        return tsr_rows_run(tsr_rows_kernels_for(choice->kernels), g);
    TSR_TRY(check_sizes(g));
    return run_by_provider(choice, g, w == WIDENED);
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
    *bytes = device.driver ? 0 : host_workspace(gemm);
    if (!device.driver)
        return TSR_OK;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    return table->gemm_workspace ? table->gemm_workspace(self, device.index, gemm, bytes) : TSR_OK;
}

/* A device is asked for the workspace of an empty product, for which it need not search an
 * algorithm. */
tsr_status tsr_gemm_supported(const char *caller, tsr_device device, const tsr_gemm *dtypes)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(device.driver, &self);
    size_t bytes;
    if (device.driver && !table->gemm)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: device \"%s\" has no gemm; move the tensors to the host or give its table one",
                              caller, table->name);
    if (device.driver)
        return tsr_gemm_workspace(device, dtypes, &bytes);
    if (device.index != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: device is host:%d, but there is one host, with index 0", caller,
                              device.index);
    if (way_of(dtypes) != NO_WAY)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s: the operands are %s; on the host linear layers are computed in f64, f32, f16 and bf16",
                          caller, tsr_dtype_name(dtypes->a_dtype));
}
