#include "ops/blas/library.h"

#include <tessera/sys/memory.h>

#include <dlfcn.h>
#include <string.h>

bool tsr_library_symbol(void *handle, const char *name, void *function)
{
    void *found = dlsym(handle, name);
    if (found)
        memcpy(function, &found, sizeof found);
    return found != NULL;
}

void tsr_library_close(tsr_context *context, tsr_library *library)
{
    tsr_release(context, library->family);
}
