#include "ops/blas/cblas.h"

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

static int transpose(int trans)
{
    return trans ? TRANS : NO_TRANS;
}

static tsr_status gemm_f32(void *self, const tsr_blas_gemm *g)
{
    const tsr_cblas *calls = self;
    calls->sgemm(ROW_MAJOR, transpose(g->trans_a), transpose(g->trans_b), (int)g->m, (int)g->n, (int)g->k,
                 (float)g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, (float)g->beta, g->c, (int)g->ldc);
    return TSR_OK;
}

static tsr_status gemm_f64(void *self, const tsr_blas_gemm *g)
{
    const tsr_cblas *calls = self;
    calls->dgemm(ROW_MAJOR, transpose(g->trans_a), transpose(g->trans_b), (int)g->m, (int)g->n, (int)g->k, g->alpha,
                 g->a, (int)g->lda, g->b, (int)g->ldb, g->beta, g->c, (int)g->ldc);
    return TSR_OK;
}

static tsr_status gemm_bf16(void *self, const tsr_blas_gemm *g)
{
    const tsr_cblas *calls = self;
    calls->bf16(ROW_MAJOR, transpose(g->trans_a), transpose(g->trans_b), (int)g->m, (int)g->n, (int)g->k,
                (float)g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, (float)g->beta, g->c, (int)g->ldc);
    return TSR_OK;
}

static tsr_status gemm_f16(void *self, const tsr_blas_gemm *g)
{
    const tsr_cblas *calls = self;
    calls->f16(ROW_MAJOR, transpose(g->trans_a), transpose(g->trans_b), (int)g->m, (int)g->n, (int)g->k,
               (float)g->alpha, g->a, (int)g->lda, g->b, (int)g->ldb, (float)g->beta, g->c, (int)g->ldc);
    return TSR_OK;
}

static tsr_status gemv_f64(void *self, const tsr_blas_gemv *g)
{
    const tsr_cblas *calls = self;
    calls->dgemv(ROW_MAJOR, transpose(g->trans), (int)g->rows, (int)g->cols, g->alpha, g->matrix, (int)g->ld, g->x,
                 (int)g->x_stride, g->beta, g->y, 1);
    return TSR_OK;
}

void tsr_cblas_fill(const tsr_cblas *calls, tsr_blas_table *table)
{
    table->gemm_f32 = gemm_f32;
    table->gemm_f64 = gemm_f64;
    table->gemv_f64 = gemv_f64;
    table->gemm_bf16 = calls->bf16 ? gemm_bf16 : NULL;
    table->gemm_f16 = calls->f16 ? gemm_f16 : NULL;
}
