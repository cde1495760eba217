#include "standin_blas.h"

#include <tessera/sys/blas.h>

#include <stdatomic.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

static atomic_int holders, holds, begins, ends, gemms, narrow;

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

/* Matrices are read without a check for NULL, so that a call for an empty product is noticed. */
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

static float widened_at(const uint16_t *matrix, int trans, int64_t ld, int64_t row, int64_t column)
{
    const union {
        uint32_t bits;
        float value;
    } wide = {(uint32_t)(trans ? matrix[column * ld + row] : matrix[row * ld + column]) << 16};
    return wide.value;
}

static tsr_status gemm_bf16(void *self, const tsr_blas_gemm *g)
{
    (void)self;
    gemms++;
    narrow++;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float *const c = (float *)g->c + i * g->ldc + j;
            *c = g->beta != 0 ? *c : 0;
            for (int64_t p = 0; p < g->k; p++)
                *c += widened_at(g->a, g->trans_a, g->lda, i, p) * widened_at(g->b, g->trans_b, g->ldb, p, j);
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
                                     .gemm_f32 = gemm_f32,
                                     .gemm_bf16 = gemm_bf16};
#endif

EXPORT const tsr_blas_table *tsr_blas_provider_table(void);
EXPORT const tsr_blas_table *tsr_blas_provider_table(void)
{
    return &table;
}

EXPORT standin_calls standin_calls_made(void);
EXPORT standin_calls standin_calls_made(void)
{
    (void)begin, (void)end, (void)hold, (void)release, (void)gemm_f32, (void)gemm_bf16;
    return (standin_calls){holders, holds, begins, ends, gemms, narrow};
}
