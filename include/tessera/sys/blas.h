/**
 * @file
 * Providers: the libraries by which linear layers multiply on the host, each behind one table.
 *
 * libtessera links one BLAS and knows how to call others that a context names
 * (tsr_context_options.blas): OpenBLAS, the one of PyPI whose symbols begin with scipy_, oneDNN and
 * MKL. A shared library of anybody's is one too if it exports tsr_blas_provider_table(). Part of
 * libtessera, not of libtessera-core.
 */
#ifndef TESSERA_SYS_BLAS_H
#define TESSERA_SYS_BLAS_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/context.h>
#include <tessera/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Row-major c[m,n] = alpha * op(a) * op(b) + beta * c; op(a) is m x k, op(b) k x n. lda, ldb, ldc:
 * elements from row to row as stored; `trans_a`: a is stored as [k,m]; `trans_b`: b is stored as
 * [n,k]. Where beta is 0, c is not read. Sizes and distances are from 1 to INT_MAX. */
typedef struct tsr_blas_gemm {
    int trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
} tsr_blas_gemm;

/** Row-major y = alpha * op(matrix[rows,cols]) * x + beta * y; the elements of y lie next to each
 * other, those of x `x_stride` apart. */
typedef struct tsr_blas_gemv {
    int trans;
    int64_t rows, cols;
    double alpha, beta;
    const void *matrix, *x;
    void *y;
    int64_t ld, x_stride;
} tsr_blas_gemv;

/** Each product is computed by one thread, the caller. Every function gets the provider's `self`,
 * from any thread. */
typedef struct tsr_blas_table {
    size_t size;         /**< sizeof(tsr_blas_table) */
    const char *name;    /**< required: "openblas" */
    const char *version; /**< required: what tells two builds apart whose products may differ in
                              bits */
    const char *core;    /**< required: for which processor its kernels are, in its own words:
                              "SkylakeX" */
    const char *kernels; /**< what those kernels use of a processor, in the words of
                              tsr_context_kernels(); NULL: nobody knows */

    /** Optional, all or none. From the first hold to the last release, by whatever contexts,
     * products are computed by one thread each; begin and end go around every product, on its
     * thread, and end gets what begin returned. */
    void (*hold)(void *self);
    void (*release)(void *self);
    int (*begin)(void *self);
    void (*end)(void *self, int token);

    /** The products that it has; NULL for others. f32 and f64: all of one dtype. bf16 and f16: a
     * and b of that dtype, c f32, sums in f32, alpha 1, beta 0 or 1. */
    tsr_status (*gemm_f32)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemm_f64)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemm_bf16)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemm_f16)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemv_f64)(void *self, const tsr_blas_gemv *gemv);
} tsr_blas_table;

/** What a shared library exports to be a provider: its table, static, whose functions get NULL for
 * `self`. */
typedef const tsr_blas_table *tsr_blas_entry(void);
/** The name of that function. */
#define TSR_BLAS_ENTRY "tsr_blas_provider_table"

/** A provider that a context has. */
typedef struct tsr_blas_provider {
    const tsr_blas_table *table;
    void *self;
    const char *source;  /**< "linked", or what was opened */
    const char *warning; /**< a sentence where its kernels are for less than this processor;
                              NULL: nothing to say */
} tsr_blas_provider;

/**
 * The providers of a context, the one that layers try first in front, in `*out`, which is the
 * context's; `*count` is 1 at least. The first call for a context opens them, and measures them
 * where there are several for f32: some milliseconds. What has been opened stays in the process.
 * TSR_ERROR_ARGUMENT, TSR_ERROR_UNAVAILABLE: what tsr_context_blas() says makes no sense, or is not
 * there. Does not communicate; any thread. `context` is not NULL.
 */
TSR_API tsr_status tsr_blas_providers(tsr_context *context, const tsr_blas_provider **out,
                                      int *count);

/** A product of a table. */
typedef tsr_status tsr_blas_multiply(void *self, const tsr_blas_gemm *gemm);

/** The product of operands of `dtype` in a table, or NULL. */
TSR_API tsr_blas_multiply *tsr_blas_find_gemm(const tsr_blas_table *table, tsr_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
