#include "ops/widened.h"

#include "ops/epilogue.h"
#include "ops/numbers.h"

#include <string.h>

/* A panel has as many rows of a, or columns of b, as make PANEL_BYTES of f32: a multiple of
 * PANEL_FACTOR from LEAST_PANEL to MOST_PANEL. */
#define PANEL_BYTES  ((int64_t)4 << 20)
#define LEAST_PANEL  64
#define MOST_PANEL   TSR_EPILOGUE_COLUMNS
#define PANEL_FACTOR 16

/* How a product is divided: c into parts of rows x columns. Operands and results of a part that are
 * not f32 have panels of f32 in the workspace, of a_bytes, b_bytes and c_bytes. */
typedef struct division {
    bool widens_a, widens_b, narrows;
    int64_t rows, columns;
    size_t a_bytes, b_bytes, c_bytes;
} division;

bool tsr_widened_takes(const tsr_gemm *g)
{
    const tsr_dtype dtypes[] = {g->a_dtype, g->b_dtype, g->c_dtype};
    bool narrow = false;
    for (int i = 0; i < 3; i++) {
        if (dtypes[i] != TSR_F32 && dtypes[i] != TSR_F16 && dtypes[i] != TSR_BF16)
            return false;
        narrow = narrow || dtypes[i] != TSR_F32;
    }
    return narrow || (g->bias && g->bias_dtype != TSR_F32);
}

static int64_t panel_of(int64_t size, int64_t k)
{
    const int64_t fitting = PANEL_BYTES / (int64_t)sizeof(float) / (k > 0 ? k : 1) / PANEL_FACTOR * PANEL_FACTOR;
    return tsr_smaller(size, fitting < LEAST_PANEL ? LEAST_PANEL : tsr_smaller(fitting, MOST_PANEL));
}

static size_t bytes_of(bool there, int64_t rows, int64_t columns)
{
    return there ? tsr_aligned_bytes((size_t)(rows * columns) * sizeof(float)) : 0;
}

static division divide(const tsr_gemm *g)
{
    division d = {
        .widens_a = g->a_dtype != TSR_F32, .widens_b = g->b_dtype != TSR_F32, .narrows = g->c_dtype != TSR_F32};
    d.rows = d.widens_a || d.narrows ? panel_of(g->m, g->k) : g->m;
    d.columns = d.widens_b || d.narrows ? panel_of(g->n, g->k) : g->n;
    d.a_bytes = bytes_of(d.widens_a, d.rows, g->k);
    d.b_bytes = bytes_of(d.widens_b, d.columns, g->k);
    d.c_bytes = bytes_of(d.narrows, d.rows, d.columns);
    return d;
}

size_t tsr_widened_workspace(const tsr_gemm *g)
{
    const division d = divide(g);
    return d.a_bytes + d.b_bytes + d.c_bytes;
}

/* The most bytes of a panel of up to `size` rows of up to `k` elements. */
static size_t most_bytes(bool there, int64_t size, int64_t k)
{
    const int64_t fitting = tsr_larger(PANEL_BYTES / (int64_t)sizeof(float), LEAST_PANEL * k);
    return bytes_of(there, 1, tsr_smaller(tsr_smaller(size, MOST_PANEL) * k, fitting));
}

size_t tsr_widened_most_workspace(const tsr_gemm *g)
{
    const division d = divide(g);
    return most_bytes(d.widens_a, g->m, g->k) + most_bytes(d.widens_b, g->n, g->k) +
           bytes_of(d.narrows, tsr_smaller(g->m, MOST_PANEL), tsr_smaller(g->n, MOST_PANEL));
}

/* One operand of a part, as f32; `ld` in elements. */
typedef struct source {
    const void *data;
    int64_t ld;
} source;

/* Takes `rows` rows of k elements from row `first` on; with `transposed` the matrix is stored with
 * rows as columns. If it is f32 they stay in place, else they are widened to `panel`. */
static tsr_status take_rows(const void *data, tsr_dtype dtype, bool transposed, int64_t ld, int64_t first, int64_t rows,
                            int64_t k, float *panel, source *out)
{
    const int64_t bytes = (int64_t)tsr_dtype_bytes(dtype), count = transposed ? k : rows,
                  length = transposed ? rows : k;
    const char *const from = (const char *)data + first * (transposed ? 1 : ld) * bytes;
    *out = (source){from, ld};
    if (dtype == TSR_F32)
        return TSR_OK;
    *out = (source){panel, length > 0 ? length : 1};
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(tsr_gemm_widen(panel + i * length, from + i * ld * bytes, dtype, length));
    return TSR_OK;
}

/* Sets each row of a part of c, which is f32, to the bias, to which the product is then added. */
static tsr_status start_from_bias(const tsr_gemm *g, const tsr_gemm *part, int64_t column)
{
    const char *const bias = (const char *)g->bias + column * (int64_t)tsr_dtype_bytes(g->bias_dtype);
    float *const first = part->c;
    TSR_TRY(tsr_gemm_widen(first, bias, g->bias_dtype, part->n));
    for (int64_t i = 1; i < part->m; i++)
        memcpy(first + i * part->ldc, first, (size_t)part->n * sizeof(float));
    return TSR_OK;
}

/* Computes the part of c at (row, column). `part` has its sizes and operands; `sums` is c's panel,
 * NULL if c is f32. */
static tsr_status make_part(tsr_f32_product *multiply, const void *self, const tsr_gemm *g, tsr_gemm *part, int64_t row,
                            int64_t column, float *sums)
{
    if (!sums) {
        part->c = (float *)g->c + row * g->ldc + column;
        part->ldc = g->ldc;
        part->beta = g->bias ? 1 : g->beta;
        if (g->bias)
            TSR_TRY(start_from_bias(g, part, column));
        return multiply(self, part);
    }
    part->c = sums;
    part->ldc = part->n;
    part->beta = 0;
    TSR_TRY(multiply(self, part));
    for (int64_t i = 0; i < part->m; i++)
        TSR_TRY(tsr_epilogue(g, 1, row + i, column, part->n, sums + i * part->n));
    return TSR_OK;
}

tsr_status tsr_widened_run(tsr_f32_product *multiply, const void *self, const tsr_gemm *g)
{
    const division d = divide(g);
    char *const a_panel = g->workspace; /* NULL if there are no panels */
    char *const b_panel = d.widens_b ? a_panel + d.a_bytes : NULL, *const sums = d.narrows
                                                                                     ? a_panel + d.a_bytes + d.b_bytes
                                                                                     : NULL;
    tsr_gemm part = {TSR_GEMM_OF(TSR_F32), .trans_a = g->trans_a, .trans_b = g->trans_b, .k = g->k, .alpha = g->alpha};
    for (int64_t column = 0; column < g->n; column += d.columns) {
        source a, b;
        part.n = tsr_smaller(d.columns, g->n - column);
        TSR_TRY(take_rows(g->b, g->b_dtype, !g->trans_b, g->ldb, column, part.n, g->k, (float *)b_panel, &b));
        for (int64_t row = 0; row < g->m; row += d.rows) {
            part.m = tsr_smaller(d.rows, g->m - row);
            TSR_TRY(take_rows(g->a, g->a_dtype, g->trans_a, g->lda, row, part.m, g->k, (float *)a_panel, &a));
            part.a = a.data, part.lda = a.ld;
            part.b = b.data, part.ldb = b.ld;
            TSR_TRY(make_part(multiply, self, g, &part, row, column, (float *)sums));
        }
    }
    return TSR_OK;
}
