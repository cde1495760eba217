/** oneDNN, where a context opens it. */
#ifndef TSR_OPS_BLAS_ONEDNN_H
#define TSR_OPS_BLAS_ONEDNN_H

#include "ops/blas/library.h"

/** TSR_ERROR_UNAVAILABLE: not a build that can be called here; the sentence says why. */
tsr_status tsr_onednn_open(tsr_context *context, void *handle, tsr_library *library);

#endif
