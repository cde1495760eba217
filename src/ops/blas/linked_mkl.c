/* The MKL that libtessera links. */
#include "ops/blas/linked_mkl.h"

#include "ops/blas/mkl.h"

#include <tessera/sys/status.h>

#include <dlfcn.h>
#include <string.h>

void MKL_Get_Version(void *version);

/* Symbols are looked up in the linked MKL alone, because the process may have another CBLAS too. */
tsr_status tsr_linked_mkl_open(tsr_context *context, void *handle, tsr_library *library)
{
    void (*const known)(void *) = MKL_Get_Version;
    void *address;
    Dl_info found;
    memcpy(&address, &known, sizeof address);
    handle = dladdr(address, &found) ? dlopen(found.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
    if (!handle)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "the MKL that libtessera links is not found in this process");
    return tsr_mkl_open(context, handle, library);
}
