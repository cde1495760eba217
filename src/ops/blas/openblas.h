/** OpenBLAS as a provider, however its calls are found. */
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

/** Fills in `library`, with the name `name`, from an OpenBLAS with these calls; `handle` is used to
 * find its OpenMP runtime, if it needs one. TSR_ERROR_UNAVAILABLE: this build cannot be called; the
 * sentence says why. */
tsr_status tsr_openblas_fill(tsr_context *context, void *handle, const char *name, const tsr_openblas_calls *calls,
                             tsr_library *library);

/** Fills in `library` from dlopen()'s `handle`. TSR_ERROR_UNAVAILABLE: this build cannot be called;
 * the sentence says why. */
tsr_status tsr_openblas_open(tsr_context *context, void *handle, tsr_library *library);

/** tsr_openblas_open() for the OpenBLAS of PyPI, whose symbols begin with scipy_. */
tsr_status tsr_scipy_openblas_open(tsr_context *context, void *handle, tsr_library *library);

#endif
