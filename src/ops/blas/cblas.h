/** Products of libraries with the CBLAS interface and 32-bit integers. */
#ifndef TSR_OPS_BLAS_CBLAS_H
#define TSR_OPS_BLAS_CBLAS_H

#include <tessera/sys/blas.h>

#include <stdint.h>

/** The library's calls; enumerations have CBLAS' values. A table with these products has a `self`
 * that begins with this struct. */
typedef struct tsr_cblas {
    void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                  const float *b, int ldb, float beta, float *c, int ldc);
    void (*dgemm)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc);
    void (*dgemv)(int order, int trans, int m, int n, double alpha, const double *a, int lda, const double *x,
                  int x_step, double beta, double *y, int y_step);
    /** Optional: bf16 and f16, for a and b of 16 bits and c in f32. */
    void (*bf16)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t *a, int lda,
                 const uint16_t *b, int ldb, float beta, float *c, int ldc);
    void (*f16)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const uint16_t *a, int lda,
                const uint16_t *b, int ldb, float beta, float *c, int ldc);
} tsr_cblas;

/** Sets the products of `table` that `calls` has. The table's self must begin with a tsr_cblas. */
void tsr_cblas_fill(const tsr_cblas *calls, tsr_blas_table *table);

#endif
