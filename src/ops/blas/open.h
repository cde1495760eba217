/** How libraries that are providers are found, by name or path, and told apart. */
#ifndef TSR_OPS_BLAS_OPEN_H
#define TSR_OPS_BLAS_OPEN_H

#include "ops/blas/library.h"

/** The one that libtessera links. `library` is zeroed, stays where it is, and is closed also after an error. */
tsr_status tsr_library_link(tsr_context *context, tsr_library *library);

/** By a name or a path. TSR_ERROR_UNAVAILABLE: it is not there, or is nothing that is known here; TSR_ERROR_ARGUMENT: no such name. */
tsr_status tsr_library_open(tsr_context *context, const char *name, tsr_library *library);

/** Name `index` of those that tsr_library_open() knows, or NULL. */
const char *tsr_library_name(int index);

#endif
