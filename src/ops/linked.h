/** The BLAS that libtessera links: linked_openblas.c or linked_mkl.c. */
#ifndef TSR_OPS_LINKED_H
#define TSR_OPS_LINKED_H

#include "ops/library.h"

/** `handle` is RTLD_DEFAULT. */
tsr_status tsr_linked_open(tsr_context *context, void *handle, tsr_library *library);

#endif
