#include "gpus.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/sys/device.h>

/* What the tool calls of the library. */
typedef struct entries {
    void *library;
    tsr_status (*driver_create)(tsr_context *context, const tsr_cuda_options *options, tsr_device_driver **out);
    tsr_status (*versions_get)(tsr_cuda_versions *out);
    tsr_status (*device_describe)(const tsr_device_driver *driver, int index, tsr_cuda_device_info *out);
    tsr_status (*reaches)(const tsr_device_driver *driver, int index, int owner, int *reaches);
} entries;

static int find_symbol(const entries *e, const char *name, void *function)
{
    void *const found = dlsym(e->library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* The library stays open: CUDA cannot be unloaded. */
static int open_library(entries *e, char *reason)
{
    if (TESSERA_TOOL_CUDA[0] == '\0') {
        snprintf(reason, CUDA_REASON_BYTES, "built without CUDA: there is no libtessera-cuda");
        return 0;
    }
    e->library = dlopen(TESSERA_TOOL_CUDA, RTLD_LAZY | RTLD_LOCAL);
    if (e->library == NULL) {
        snprintf(reason, CUDA_REASON_BYTES, "libtessera-cuda cannot be opened: %s", dlerror());
        return 0;
    }
    if (find_symbol(e, "tsr_cuda_driver_create", &e->driver_create) && find_symbol(e, "tsr_cuda_versions_get", &e->versions_get) &&
        find_symbol(e, "tsr_cuda_device_describe", &e->device_describe) && find_symbol(e, "tsr_cuda_reaches", &e->reaches))
        return 1;
    snprintf(reason, CUDA_REASON_BYTES, "%s is of another version: %s", TESSERA_TOOL_CUDA, dlerror());
    return 0;
}

/* 13020 is 13.2; 0 is none. */
static void print_version(int version, char text[CUDA_VERSION_BYTES])
{
    if (version > 0)
        snprintf(text, CUDA_VERSION_BYTES, "%d.%d", version / 1000, version % 1000 / 10);
}

static void gather_versions(const entries *e, cuda_facts *out)
{
    int (*nccl_version)(int *);
    tsr_cuda_versions versions = {.size = sizeof versions};
    int number = 0;
    if (e->versions_get(&versions) == TSR_OK) {
        print_version(versions.runtime, out->runtime);
        print_version(versions.driver, out->driver);
    }
    /* Through the library, whose dependency it is; 22809 is 2.28.9. */
    if (find_symbol(e, "ncclGetVersion", &nccl_version) && nccl_version(&number) == 0 && number > 0)
        snprintf(out->nccl, sizeof out->nccl, "%d.%d.%d", number / 10000, number / 100 % 100, number % 100);
}

static tsr_status gather_gpu(const entries *e, const tsr_device_driver *driver, int index, int count, cuda_gpu *out)
{
    out->info.size = sizeof out->info;
    out->reaches = calloc((size_t)count, 1);
    if (out->reaches == NULL)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %d GPUs", count);
    TSR_TRY(e->device_describe(driver, index, &out->info));
    for (int owner = 0; owner < count; owner++) {
        int reaches;
        TSR_TRY(e->reaches(driver, index, owner, &reaches));
        out->reaches[owner] = reaches != 0;
    }
    return TSR_OK;
}

static tsr_status gather_gpus(const entries *e, const tsr_device_driver *driver, cuda_facts *out)
{
    void *self;
    const char *reason;
    int count;
    TSR_TRY(tsr_device_driver_table(driver, &self)->count(self, &count, &reason));
    if (count == 0) {
        snprintf(out->reason, sizeof out->reason, "%s", reason);
        return TSR_OK;
    }
    out->gpus = calloc((size_t)count, sizeof *out->gpus);
    if (out->gpus == NULL)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %d GPUs", count);
    out->count = count;
    for (int index = 0; index < count; index++)
        TSR_TRY(gather_gpu(e, driver, index, count, &out->gpus[index]));
    return TSR_OK;
}

void cuda_gather(cuda_facts *out)
{
    entries e;
    tsr_device_driver *driver = NULL;
    memset(out, 0, sizeof *out);
    if (!open_library(&e, out->reason))
        return;
    gather_versions(&e, out);
    tsr_status status = e.driver_create(NULL, NULL, &driver);
    if (status == TSR_OK)
        status = gather_gpus(&e, driver, out);
    if (status != TSR_OK) {
        cuda_release(out);
        snprintf(out->reason, sizeof out->reason, "%s", tsr_status_message());
    }
    tsr_device_driver_destroy(driver);
}

void cuda_release(cuda_facts *facts)
{
    for (int i = 0; i < facts->count; i++)
        free(facts->gpus[i].reaches);
    free(facts->gpus);
    facts->gpus = NULL;
    facts->count = 0;
}
