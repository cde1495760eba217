/** A shared library that is a provider, as it is made. */
#ifndef TSR_OPS_BLAS_LIBRARY_H
#define TSR_OPS_BLAS_LIBRARY_H

#include <stdbool.h>
#include <tessera/sys/blas.h>

/** Room for what a provider says of itself. */
enum { TSR_PROVIDER_TEXT = 256 };

/** What a table's texts point to, and its functions' self. A family of libraries fills in texts, table and family, from what `handle` of
 * dlopen() has; the source is set before. */
typedef struct tsr_library {
    tsr_blas_provider provider;
    tsr_blas_table table;
    char name[32], version[TSR_PROVIDER_TEXT], core[TSR_PROVIDER_TEXT], source[4 * TSR_PROVIDER_TEXT], warning[2 * TSR_PROVIDER_TEXT];
    void *family; /**< the functions of a library that is called by its own names: self of the table; NULL for others */
} tsr_library;

/** Gives back what is the context's; the library itself stays in the process. */
void tsr_library_close(tsr_context *context, tsr_library *library);

/** dlsym() into a pointer to a function, at `function`: false where it is not there. */
bool tsr_library_symbol(void *handle, const char *name, void *function);

#endif
