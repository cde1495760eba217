/** Libraries that are called as CBLAS says, with 32-bit integers. */
#ifndef TSR_OPS_BLAS_CBLAS_H
#define TSR_OPS_BLAS_CBLAS_H

#include <stdint.h>
#include <tessera/sys/blas.h>

/** The calls, in CBLAS' own enumerations. Stands first in what is `self` of a table whose products these are. */
typedef struct tsr_cblas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb,
                  float beta, float *c, int ldc);
    void (*dgemm)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda, const double *b,
                  int ldb, double beta, double *c, int ldc);
    void (*dgemv)(int order, int trans, int m, int n, double alpha, const double *a, int lda, const double *x, int x_step, double beta,
                  double *y, int y_step);
    /** Optional: a and b of 16 bits, c f32. */
    void (*bf16)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t *a, int lda, const uint16_t *b,
                 int ldb, float beta, float *c, int ldc);
    void (*f16)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t *a, int lda, const uint16_t *b,
                int ldb, float beta, float *c, int ldc);
} tsr_cblas;

/** Sets the products of `table` that `calls` has, for a self that begins with it. */
void tsr_cblas_fill(const tsr_cblas *calls, tsr_blas_table *table);

#endif
