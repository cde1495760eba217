/** A shared library that is a provider, while it is opened. */
#ifndef TSR_OPS_BLAS_LIBRARY_H
#define TSR_OPS_BLAS_LIBRARY_H

#include <tessera/sys/blas.h>

#include <stdbool.h>

/** Bytes of a text in which a provider describes itself. */
enum { TSR_PROVIDER_TEXT = 256 };

/** A provider with its table, the texts that the table points to, and the self of its functions.
 * The caller sets `source`; the code of the library's family fills in name, version, core, warning,
 * table and family. */
typedef struct tsr_library {
    tsr_blas_provider provider;
    tsr_blas_table table;
    char name[32], version[TSR_PROVIDER_TEXT], core[TSR_PROVIDER_TEXT], source[4 * TSR_PROVIDER_TEXT],
        warning[2 * TSR_PROVIDER_TEXT];
    void *family; /**< the table's self: the library's functions; NULL for a library that exports a table */
} tsr_library;

/** Releases memory of the context; the library itself stays in the process. */
void tsr_library_close(tsr_context *context, tsr_library *library);

/** dlsym(): stores the address of symbol `name` in the function pointer at `function`; false: there
 * is no such symbol. */
bool tsr_library_symbol(void *handle, const char *name, void *function);

#endif
