/* The OpenBLAS that libtessera links; its symbols begin with TSR_BLAS_PREFIX. */
#include "ops/blas/linked_openblas.h"

#include "ops/blas/openblas.h"

#define PASTE(prefix, name) prefix##name
#define NAMED(prefix, name) PASTE(prefix, name)
#define CALL(name)          NAMED(TSR_BLAS_PREFIX, name)

/* Declared here because the name and place of OpenBLAS' cblas.h differ between distributions;
 * enumerations are int. */
void CALL(cblas_sgemm)(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                       int);
void CALL(cblas_dgemm)(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *,
                       int);
void CALL(cblas_dgemv)(int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
int CALL(openblas_get_parallel)(void);
int CALL(openblas_get_num_threads)(void);
void CALL(openblas_set_num_threads)(int);
char *CALL(openblas_get_config)(void);
char *CALL(openblas_get_corename)(void);

tsr_status tsr_linked_openblas_open(tsr_context *context, void *handle, tsr_library *library)
{
    tsr_openblas_calls calls = {
        .products = {.sgemm = CALL(cblas_sgemm), .dgemm = CALL(cblas_dgemm), .dgemv = CALL(cblas_dgemv)},
        .threads = {.parallel = CALL(openblas_get_parallel),
                    .get = CALL(openblas_get_num_threads),
                    .set = CALL(openblas_set_num_threads)},
        .config = CALL(openblas_get_config),
        .core = CALL(openblas_get_corename)};
    return tsr_openblas_fill(context, handle, TSR_BLAS_NAME, &calls, library);
}
