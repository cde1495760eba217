#include "place/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>

/** What openblas_get_parallel() answers. */
enum { BUILD_SERIAL = 0, BUILD_PTHREAD = 1, BUILD_OPENMP = 2 };

void blas_describe(char text[BLAS_TEXT_BYTES])
{
    static const char *const builds[] = {[BUILD_SERIAL] = "serial", [BUILD_PTHREAD] = "pthread", [BUILD_OPENMP] = "OpenMP"};
    const int parallel = openblas_get_parallel();
    const char *const build = parallel >= BUILD_SERIAL && parallel <= BUILD_OPENMP ? builds[parallel] : "unknown";
    snprintf(text, BLAS_TEXT_BYTES, "%s, %s build, kernels for %s", openblas_get_config(), build, openblas_get_corename());
}

void blas_enter(void)
{
    openblas_set_num_threads(1);
}

static void multiply(tsr_dtype dtype, const blas_gemm *g)
{
    const CBLAS_TRANSPOSE trans_a = g->trans_a ? CblasTrans : CblasNoTrans, trans_b = g->trans_b ? CblasTrans : CblasNoTrans;
    const blasint m = (blasint)g->m, n = (blasint)g->n, k = (blasint)g->k;
    const blasint lda = g->trans_a ? m : k, ldb = g->trans_b ? k : n;
    if (dtype == TSR_F64)
        cblas_dgemm(CblasRowMajor, trans_a, trans_b, m, n, k, 1, g->a, lda, g->b, ldb, 0, g->c, n);
    else
        cblas_sgemm(CblasRowMajor, trans_a, trans_b, m, n, k, 1, g->a, lda, g->b, ldb, 0, g->c, n);
}

void blas_run(tsr_dtype dtype, const blas_gemm *gemm)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    if (gemm->m == 0 || gemm->n == 0 || gemm->k == 0)
        return;
    const int serial = openblas_get_parallel() == BUILD_SERIAL;
    if (serial)
        pthread_mutex_lock(&one_at_a_time);
    multiply(dtype, gemm);
    if (serial)
        pthread_mutex_unlock(&one_at_a_time);
}
