/** The providers of a context: those that it names and the linked one, in the order in which layers
 * try them. */
#ifndef TSR_OPS_BLAS_PROVIDER_H
#define TSR_OPS_BLAS_PROVIDER_H

#include "ops/blas/choice.h"

/** The choice of this rank alone: all providers of the context, and its kernels. Opens the
 * providers if needed; does not communicate. */
tsr_status tsr_choice_own(tsr_context *context, tsr_choice *out);

#endif
