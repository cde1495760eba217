/** Shared libraries that are providers: how each family of them is found out and called. */
#ifndef TSR_OPS_LIBRARY_H
#define TSR_OPS_LIBRARY_H

#include "ops/provider.h"

/** Room for what a provider says of itself. */
enum { TSR_PROVIDER_TEXT = 256 };

/** A provider as it is made: what its table's texts point to, and its functions' self. */
typedef struct tsr_library {
    tsr_blas_provider provider;
    tsr_blas_table table;
    char name[32], version[TSR_PROVIDER_TEXT], core[TSR_PROVIDER_TEXT], source[4 * TSR_PROVIDER_TEXT], warning[2 * TSR_PROVIDER_TEXT];
    void *family; /**< the functions of a library that is called by its own names: self of the table; NULL for others */
} tsr_library;

/** The one that libtessera links. `library` stays where it is, and is closed also after an error. */
tsr_status tsr_library_link(tsr_context *context, tsr_library *library);

/** By a name or a path. TSR_ERROR_UNAVAILABLE: it is not there, or is nothing that is known here; TSR_ERROR_ARGUMENT: no such name. */
tsr_status tsr_library_open(tsr_context *context, const char *name, tsr_library *library);

/** Gives back what is the context's; the library itself stays in the process. */
void tsr_library_close(tsr_context *context, tsr_library *library);

/** Name `index` of those that tsr_library_open() knows, or NULL. */
const char *tsr_library_name(int index);

/** Families: fill in texts, table and family of `library`, whose source is set, from what `handle` of dlopen() has. */
tsr_status tsr_linked_open(tsr_context *context, void *handle, tsr_library *library);
tsr_status tsr_openblas_open(tsr_context *context, void *handle, tsr_library *library);
tsr_status tsr_scipy_openblas_open(tsr_context *context, void *handle, tsr_library *library);
tsr_status tsr_onednn_open(tsr_context *context, void *handle, tsr_library *library);
tsr_status tsr_mkl_open(tsr_context *context, void *handle, tsr_library *library);

/** dlsym() into a pointer to a function, at `function`: false where it is not there. */
bool tsr_library_symbol(void *handle, const char *name, void *function);

#endif
