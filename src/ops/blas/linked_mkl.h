/** The MKL that libtessera links, in builds that link MKL. */
#ifndef TSR_OPS_BLAS_LINKED_MKL_H
#define TSR_OPS_BLAS_LINKED_MKL_H

#include "ops/blas/library.h"

/** Fills in `library` from the linked MKL; `handle` is RTLD_DEFAULT. TSR_ERROR_UNAVAILABLE: the
 * sentence says why. */
tsr_status tsr_linked_mkl_open(tsr_context *context, void *handle, tsr_library *library);

#endif
