/** The OpenBLAS that libtessera links, in builds that link OpenBLAS. */
#ifndef TSR_OPS_BLAS_LINKED_OPENBLAS_H
#define TSR_OPS_BLAS_LINKED_OPENBLAS_H

#include "ops/blas/library.h"

/** Fills in `library` from the linked OpenBLAS; `handle` is RTLD_DEFAULT. TSR_ERROR_UNAVAILABLE:
 * the sentence says why. */
tsr_status tsr_linked_openblas_open(tsr_context *context, void *handle, tsr_library *library);

#endif
