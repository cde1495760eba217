/** The BLAS that the tool itself calls, to compare the layers with. */
#ifndef TESSERA_TOOLS_PLACE_BLAS_H
#define TESSERA_TOOLS_PLACE_BLAS_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/dtype.h>

/** Room for any description. */
#define BLAS_TEXT_BYTES 256

/** What it is and how it is threaded, in words; "none" in a build without. */
void blas_describe(char text[BLAS_TEXT_BYTES]);

/** c[m,n] = op(a) op(b), row-major and dense: `trans_a` says that a is stored as [k,m], likewise b. */
typedef struct blas_gemm {
    int trans_a, trans_b;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
} blas_gemm;

/** To be called by every rank thread before its first blas_run(): one BLAS thread for each rank. */
void blas_enter(void);

/** f32 or f64. May be called by all rank threads at once: a serial build, which is not safe then, is locked. */
void blas_run(tsr_dtype dtype, const blas_gemm *gemm);

#endif
