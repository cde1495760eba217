#include "ops/rows.h"

#include "ops/epilogue.h"
#include "ops/kernel_sets.h"
#include "ops/numbers.h"

/* Columns of c that are computed before they are written. If b is stored [k,n], their sums stay in
 * the first-level cache. */
#define PANEL 256
_Static_assert(PANEL <= TSR_EPILOGUE_COLUMNS, "an epilogue takes a panel");

static const tsr_rows_kernels *const sets[] = TSR_KERNEL_SETS(tsr_rows_kernels);

const tsr_rows_kernels *tsr_rows_kernels_for(const char *name)
{
    return sets[tsr_kernel_set(name)];
}

static bool is_taken(tsr_dtype dtype)
{
    return dtype == TSR_F32 || dtype == TSR_F16 || dtype == TSR_BF16;
}

bool tsr_rows_takes(const tsr_gemm *g)
{
    return g->m <= TSR_ROWS_MOST && g->m > 0 && g->n > 0 && g->k > 0 && is_taken(g->a_dtype) && is_taken(g->b_dtype) &&
           is_taken(g->c_dtype);
}

/* True if the rows of a need no packing: a is f32 and not transposed. */
static bool has_plain_rows(const tsr_gemm *g)
{
    return g->a_dtype == TSR_F32 && !g->trans_a;
}

size_t tsr_rows_workspace(const tsr_gemm *g)
{
    return has_plain_rows(g) ? 0 : tsr_aligned_bytes((size_t)(g->m * g->k) * sizeof(float));
}

/* Packs a, which is stored [k,m], as m rows of f32. */
static tsr_status pack_transposed(const tsr_gemm *g, float *rows)
{
    for (int64_t t = 0; t < g->k; t++) {
        float column[TSR_ROWS_MOST];
        TSR_TRY(tsr_gemm_widen(column, (const char *)g->a + t * g->lda * (int64_t)tsr_dtype_bytes(g->a_dtype),
                               g->a_dtype, g->m));
        for (int64_t i = 0; i < g->m; i++)
            rows[i * g->k + t] = column[i];
    }
    return TSR_OK;
}

static tsr_status pack_rows(const tsr_gemm *g, float *rows)
{
    if (g->trans_a)
        return pack_transposed(g, rows);
    for (int64_t i = 0; i < g->m; i++)
        TSR_TRY(tsr_gemm_widen(rows + i * g->k, (const char *)g->a + i * g->lda * (int64_t)tsr_dtype_bytes(g->a_dtype),
                               g->a_dtype, g->k));
    return TSR_OK;
}

/* True if the sums are the results, so that kernels write them to c. */
static bool is_direct(const tsr_gemm *g)
{
    return g->c_dtype == TSR_F32 && g->alpha == 1 && g->beta == 0 && !g->bias;
}

static tsr_status run_by_panels(tsr_rows_kernel *kernel, const tsr_gemm *g, tsr_rows_part part)
{
    float sums[TSR_ROWS_MOST * PANEL];
    const int64_t step = (g->trans_b ? g->ldb : 1) * (int64_t)tsr_dtype_bytes(g->b_dtype);
    const bool direct = is_direct(g);
    for (int64_t j = 0; j < g->n; j += PANEL) {
        part.w = (const char *)g->b + j * step;
        part.n = g->n - j < PANEL ? g->n - j : PANEL;
        part.sums = direct ? (float *)g->c + j : sums;
        part.sums_ld = direct ? g->ldc : PANEL;
        kernel(&part);
        for (int64_t i = 0; i < g->m && !direct; i++)
            TSR_TRY(tsr_epilogue(g, g->alpha, i, j, part.n, sums + i * PANEL));
    }
    return TSR_OK;
}

tsr_status tsr_rows_run(const tsr_rows_kernels *kernels, const tsr_gemm *g)
{
    tsr_rows_kernel *const kernel = g->trans_b ? kernels->dots[g->b_dtype] : kernels->terms[g->b_dtype];
    tsr_rows_part part = {.w_ld = g->ldb, .x = g->a, .x_ld = g->lda, .m = g->m, .k = g->k};
    if (!has_plain_rows(g)) {
        part.x = g->workspace;
        part.x_ld = g->k;
        TSR_TRY(pack_rows(g, g->workspace));
    }
    return run_by_panels(kernel, g, part);
}
