#include "place/cuda_library.h"

#include <tessera/sys/library.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool find(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_device(void *library, cuda_library *out)
{
    return find(library, "tsr_cuda_driver_create", &out->driver_create) &&
           find(library, "tsr_cuda_versions_get", &out->versions_get) &&
           find(library, "tsr_cuda_device_describe", &out->device_describe) &&
           find(library, "tsr_cuda_reaches", &out->reaches) && find(library, "cudaSetDevice", &out->set_device);
}

/* Sets all functions of NCCL, or none. */
static void find_nccl(void *library, cuda_library *out)
{
    const bool found = find(library, "tsr_nccl_id_create", &out->nccl_id_create) &&
                       find(library, "tsr_comm_create_nccl", &out->comm_create_nccl) &&
                       find(library, "ncclGetVersion", &out->nccl_version);
    if (found)
        return;
    out->nccl_id_create = NULL;
    out->comm_create_nccl = NULL;
    out->nccl_version = NULL;
}

/* dlsym() on the library also finds the functions of its dependencies, the CUDA runtime and
 * NCCL. */
bool cuda_library_open(cuda_library *out, char reason[CUDA_REASON_BYTES])
{
    memset(out, 0, sizeof *out);
    errno = 0;
    if (TESSERA_TOOL_CUDA[0] == '\0') {
        snprintf(reason, CUDA_REASON_BYTES, "built without CUDA: there is no libtessera-cuda");
        return false;
    }
    void *library;
    const tsr_status status = tsr_library_load(TESSERA_TOOL_CUDA, RTLD_LAZY | RTLD_LOCAL, &library);
    if (status != TSR_OK) {
        snprintf(reason, CUDA_REASON_BYTES, "libtessera-cuda cannot be opened: %s", tsr_status_message());
        errno = status == TSR_ERROR_MEMORY ? ENOMEM : 0;
        return false;
    }
    if (!find_device(library, out)) {
        snprintf(reason, CUDA_REASON_BYTES, "%s is of another version: %s", TESSERA_TOOL_CUDA, dlerror());
        return false;
    }
    find_nccl(library, out);
    return true;
}
