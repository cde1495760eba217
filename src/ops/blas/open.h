/** Finds libraries that are providers, by name or path, and recognises their family. */
#ifndef TSR_OPS_BLAS_OPEN_H
#define TSR_OPS_BLAS_OPEN_H

#include "ops/blas/library.h"

/** Opens the library that libtessera links. `library` comes as all zero and must not move; the
 * caller closes it, also after an error. */
tsr_status tsr_library_link(tsr_context *context, tsr_library *library);

/** Opens a library by name or path; `library` as for tsr_library_link(). TSR_ERROR_UNAVAILABLE: the
 * library is not found, or cannot be used; TSR_ERROR_ARGUMENT: the name is not known. */
tsr_status tsr_library_open(tsr_context *context, const char *name, tsr_library *library);

/** The index-th name that tsr_library_open() knows; NULL behind the last. */
const char *tsr_library_name(int index);

#endif
