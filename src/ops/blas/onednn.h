/** oneDNN as a provider. */
#ifndef TSR_OPS_BLAS_ONEDNN_H
#define TSR_OPS_BLAS_ONEDNN_H

#include "ops/blas/library.h"

/** Fills in `library` from dlopen()'s `handle`. TSR_ERROR_UNAVAILABLE: this build cannot be called;
 * the sentence says why. */
tsr_status tsr_onednn_open(tsr_context *context, void *handle, tsr_library *library);

#endif
