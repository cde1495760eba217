/**
 * @file
 * Providers: the libraries with which linear layers multiply on the host, each behind one table.
 *
 * libtessera links one BLAS and can call others that a context names (tsr_context_options.blas):
 * OpenBLAS, PyPI's OpenBLAS whose symbols begin with scipy_, oneDNN and MKL. Any other shared
 * library is a provider too if it exports tsr_blas_provider_table(). Part of libtessera, not of
 * libtessera-core.
 */
#ifndef TESSERA_SYS_BLAS_H
#define TESSERA_SYS_BLAS_H

#include <tessera/context.h>
#include <tessera/dtype.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Row-major c[m,n] = alpha * op(a) * op(b) + beta * c; op(a) is m x k, op(b) k x n. lda, ldb, ldc:
 * elements from row to row as stored. `trans_a`: a is stored as [k,m]; `trans_b`: b is stored as
 * [n,k]. Where beta is 0, c is not read. Sizes and row distances are from 1 to INT_MAX. */
typedef struct tsr_blas_gemm {
    int trans_a, trans_b;
    int64_t m, n, k;
    double alpha, beta;
    const void *a, *b;
    void *c;
    int64_t lda, ldb, ldc;
} tsr_blas_gemm;

/** Row-major y = alpha * op(matrix[rows,cols]) * x + beta * y. Elements of y are contiguous, those
 * of x `x_stride` apart. */
typedef struct tsr_blas_gemv {
    int trans;
    int64_t rows, cols;
    double alpha, beta;
    const void *matrix, *x;
    void *y;
    int64_t ld, x_stride;
} tsr_blas_gemv;

/** Operations of a provider. The calling thread alone computes each product. Every function gets
 * the provider's `self`, from any thread. */
typedef struct tsr_blas_table {
    size_t size;         /**< sizeof(tsr_blas_table) */
    const char *name;    /**< required: "openblas" */
    const char *version; /**< required: tells builds apart whose products may differ in bits */
    const char *core;    /**< required: the processor that its kernels are for, in its own words:
                              "SkylakeX" */
    const char *kernels; /**< the instructions that its kernels use, in the words of
                              tsr_context_kernels(); NULL: unknown */

    /** Optional, all or none. From the first hold to the last release, over all contexts, one
     * thread computes each product. begin and end go around every product, on its thread; end gets
     * what begin returned. */
    void (*hold)(void *self);
    void (*release)(void *self);
    int (*begin)(void *self);
    void (*end)(void *self, int token);

    /** Products; NULL: the provider lacks this one. f32 and f64: all operands of that dtype. bf16
     * and f16: a and b of that dtype, c f32, sums in f32, alpha 1, beta 0 or 1. */
    tsr_status (*gemm_f32)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemm_f64)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemm_bf16)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemm_f16)(void *self, const tsr_blas_gemm *gemm);
    tsr_status (*gemv_f64)(void *self, const tsr_blas_gemv *gemv);
} tsr_blas_table;

/** The function that a shared library exports to be a provider. Returns its table, static, whose
 * functions get NULL for `self`. */
typedef const tsr_blas_table *tsr_blas_entry(void);

/** The exported name of a tsr_blas_entry function. */
#define TSR_BLAS_ENTRY "tsr_blas_provider_table"

/** A provider of a context. */
typedef struct tsr_blas_provider {
    const tsr_blas_table *table;
    void *self;
    const char *source;  /**< "linked", or the name or path of the library that was opened */
    const char *warning; /**< a sentence if its kernels use less than this processor has; else
                              NULL */
} tsr_blas_provider;

/**
 * The context's providers in `*out`, borrowed from the context; layers try them in this order.
 * `*count` is at least 1. The first call for a context opens them, and measures them if several
 * have f32, which takes some milliseconds. Opened libraries stay in the process. `context` is not
 * NULL. Does not communicate; any thread.
 *
 * TSR_ERROR_ARGUMENT: the value of tsr_context_blas() cannot be read. TSR_ERROR_UNAVAILABLE: a
 * library that it names cannot be opened or used.
 */
TSR_API tsr_status tsr_blas_providers(tsr_context *context, const tsr_blas_provider **out,
                                      int *count);

/** A gemm function of a table. */
typedef tsr_status tsr_blas_multiply(void *self, const tsr_blas_gemm *gemm);

/** The table's gemm for operands of `dtype`; NULL if it has none. */
TSR_API tsr_blas_multiply *tsr_blas_find_gemm(const tsr_blas_table *table, tsr_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
