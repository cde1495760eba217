#include "ops/blas/open.h"

#include "ops/blas/linked_mkl.h"
#include "ops/blas/linked_openblas.h"
#include "ops/blas/mkl.h"
#include "ops/blas/onednn.h"
#include "ops/blas/openblas.h"

#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef tsr_status open_function(tsr_context *context, void *handle, tsr_library *library);

/* Copies the table that the library exports; its functions' self is NULL. */
static tsr_status open_entry(tsr_context *context, void *handle, tsr_library *library)
{
    (void)context;
    tsr_blas_entry *entry = NULL;
    tsr_library_symbol(handle, TSR_BLAS_ENTRY, &entry);
    const tsr_blas_table *table = entry ? entry() : NULL;
    if (!table || table->size < offsetof(tsr_blas_table, hold) || table->size > sizeof *table || !table->name ||
        !table->version || !table->core)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s: %s() returns no table that this library can use",
                              library->source, TSR_BLAS_ENTRY);
    memcpy(&library->table, table, table->size);
    snprintf(library->name, sizeof library->name, "%s", table->name);
    snprintf(library->version, sizeof library->version, "%s", table->version);
    snprintf(library->core, sizeof library->core, "%s", table->core);
    return TSR_OK;
}

/* A family of libraries is recognised by a symbol that only it has. If only its name is given, it
 * is looked for under its sonames. */
static const struct {
    const char *name, *symbol;
    const char *sonames[3];
    open_function *open;
} families[] = {
    {NULL, TSR_BLAS_ENTRY, {NULL}, open_entry},
    {"openblas", "openblas_get_corename", {"libopenblas.so.0"}, tsr_openblas_open},
    {"scipy-openblas", "scipy_openblas_get_corename", {"libscipy_openblas.so"}, tsr_scipy_openblas_open},
    {"onednn", "dnnl_sgemm", {"libdnnl.so.3"}, tsr_onednn_open},
    {"mkl", "MKL_Get_Version", {"libmkl_rt.so.3", "libmkl_rt.so.2"}, tsr_mkl_open},
};

enum { FAMILIES = sizeof families / sizeof *families };

const char *tsr_library_name(int index)
{
    return index + 1 < FAMILIES ? families[index + 1].name : NULL;
}

/* Makes a complete provider of the filled-in fields. */
static void finish_provider(tsr_library *library)
{
    tsr_blas_table *table = &library->table;
    table->size = sizeof *table;
    table->name = library->name;
    table->version = library->version;
    table->core = library->core;
    library->provider = (tsr_blas_provider){.table = table,
                                            .self = library->family,
                                            .source = library->source,
                                            .warning = library->warning[0] ? library->warning : NULL};
}

static tsr_status open_with(tsr_context *context, open_function *open, void *handle, tsr_library *library)
{
    const tsr_status status = open(context, handle, library);
    if (status == TSR_OK)
        finish_provider(library);
    return status;
}

/* Never unloaded, because such libraries have threads of their own, and leave thread-local data in
 * other threads. */
static void *load_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

static tsr_status open_path(tsr_context *context, const char *path, tsr_library *library)
{
    if (strlen(path) >= sizeof library->source)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "blas \"%.64s..\": a path may have %zu bytes", path,
                              sizeof library->source - 1);
    strcpy(library->source, path);
    void *handle = load_library(path);
    if (!handle)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "blas \"%s\" cannot be opened: %s", path, dlerror());
    for (int i = 0; i < FAMILIES; i++)
        if (dlsym(handle, families[i].symbol))
            return open_with(context, families[i].open, handle, library);
    dlclose(handle);
    return tsr_status_set(TSR_ERROR_UNAVAILABLE, "blas \"%s\" is not OpenBLAS, oneDNN or MKL, and exports no %s()",
                          path, TSR_BLAS_ENTRY);
}

static tsr_status open_family(tsr_context *context, int family, tsr_library *library)
{
    char why[TSR_PROVIDER_TEXT] = "";
    for (int i = 0; i < 3 && families[family].sonames[i]; i++) {
        void *handle = load_library(families[family].sonames[i]);
        if (handle) {
            snprintf(library->source, sizeof library->source, "%s", families[family].sonames[i]);
            return open_with(context, families[family].open, handle, library);
        }
        snprintf(why, sizeof why, "%s", dlerror());
    }
    return tsr_status_set(TSR_ERROR_UNAVAILABLE,
                          "blas \"%s\" is not found where libraries are looked for (%s); give its path instead",
                          families[family].name, why);
}

tsr_status tsr_library_open(tsr_context *context, const char *name, tsr_library *library)
{
    if (strchr(name, '/'))
        return open_path(context, name, library);
    for (int i = 1; i < FAMILIES; i++)
        if (strcmp(name, families[i].name) == 0)
            return open_family(context, i, library);
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "blas is \"%.64s\", not auto, openblas, scipy-openblas, onednn, mkl, or the path of a library, with a '/'",
        name);
}

/* TSR_BLAS_LINKED is tsr_linked_mkl_open or tsr_linked_openblas_open, whichever this build has. */
tsr_status tsr_library_link(tsr_context *context, tsr_library *library)
{
    strcpy(library->source, "linked");
    return open_with(context, TSR_BLAS_LINKED, RTLD_DEFAULT, library);
}
