/** What every OpenBLAS has, however its calls are found. */
#ifndef TSR_OPS_BLAS_OPENBLAS_H
#define TSR_OPS_BLAS_OPENBLAS_H

#include "ops/blas/cblas.h"
#include "ops/blas/guard.h"
#include "ops/blas/library.h"

typedef struct tsr_openblas_calls {
    tsr_cblas products;
    tsr_blas_threads threads;
    char *(*config)(void);
    char *(*core)(void);
} tsr_openblas_calls;

/** Makes a provider called `name` of an OpenBLAS with these calls, which finds its OpenMP, if it needs one, by `handle`. */
tsr_status tsr_openblas_fill(tsr_context *context, void *handle, const char *name, const tsr_openblas_calls *calls, tsr_library *library);

/** With plain symbols, and with the prefix of PyPI's. TSR_ERROR_UNAVAILABLE: not a build that can be called here; the sentence says why. */
tsr_status tsr_openblas_open(tsr_context *context, void *handle, tsr_library *library);
tsr_status tsr_scipy_openblas_open(tsr_context *context, void *handle, tsr_library *library);

#endif
