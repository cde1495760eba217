#include "standin_blas.h"

#include <stdatomic.h>
#include <stddef.h>
#include <tessera/sys/blas.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_int holders, holds, begins, ends, gemms, gemvs;

static void hold(void *self)
{
    (void)self;
    holders++;
    holds++;
}

static void release(void *self)
{
    (void)self;
    holders--;
}

static int begin(void *self)
{
    (void)self;
    return ++begins;
}

static void end(void *self, int token)
{
    (void)self;
    ends += token > 0;
}

/* No NULL, so that products of nothing tell. */
static float at(const float *matrix, int trans, int64_t ld, int64_t row, int64_t column)
{
    return trans ? matrix[column * ld + row] : matrix[row * ld + column];
}

static tsr_status gemm_f32(void *self, const tsr_blas_gemm *g)
{
    (void)self;
    gemms++;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float sum = 0, *c = (float *)g->c + i * g->ldc + j;
            for (int64_t p = 0; p < g->k; p++)
                sum += at(g->a, g->trans_a, g->lda, i, p) * at(g->b, g->trans_b, g->ldb, p, j);
            *c = (float)g->alpha * sum + (g->beta != 0 ? (float)g->beta * *c : 0);
        }
    return TSR_OK;
}

#ifdef STANDIN_BROKEN
static const tsr_blas_table table = {.size = 1, .name = "broken", .version = "1", .core = "none"};
#else
static const tsr_blas_table table = {.size = sizeof table,
                                     .name = STANDIN_NAME,
                                     .version = "1",
                                     .core = "plain",
                                     .hold = hold,
                                     .release = release,
                                     .begin = begin,
                                     .end = end,
                                     .gemm_f32 = gemm_f32};
#endif

EXPORT const tsr_blas_table *tsr_blas_provider_table(void);
EXPORT const tsr_blas_table *tsr_blas_provider_table(void)
{
    return &table;
}

EXPORT standin_calls standin_calls_made(void);
EXPORT standin_calls standin_calls_made(void)
{
    (void)begin, (void)end, (void)hold, (void)release, (void)gemm_f32;
    return (standin_calls){holders, holds, begins, ends, gemms, gemvs};
}
