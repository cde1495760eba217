#include "tensor/dlpack/memory.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

tsr_status tsr_dl_allocate(tsr_context *context, size_t bytes, void **out)
{
    if (context) {
        TSR_TRY(tsr_allocate(context, bytes, out));
        (void)tsr_context_retain(context);
        return TSR_OK;
    }
    void *const memory = malloc(bytes);
    if (!memory)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu bytes", bytes);
    *out = memory;
    return TSR_OK;
}

void tsr_dl_release(tsr_context *context, void *memory)
{
    if (!context) {
        free(memory);
        return;
    }
    tsr_release(context, memory);
    tsr_context_destroy(context);
}
