#include "place/gpus.h"

#include "command.h"

#include <tessera/sys/device.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 13020 prints as 13.2; for 0 the text is left alone. */
static void print_version(int version, char text[CUDA_VERSION_BYTES])
{
    if (version > 0)
        snprintf(text, CUDA_VERSION_BYTES, "%d.%d", version / 1000, version % 1000 / 10);
}

/* 22809 prints as 2.28.9; for 0 the text is left alone. */
static void print_long_version(int version, char text[CUDA_VERSION_BYTES])
{
    if (version > 0)
        snprintf(text, CUDA_VERSION_BYTES, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static void gather_versions(cuda_facts *out)
{
    tsr_cuda_versions versions = {.size = sizeof versions};
    int number = 0;
    if (out->library.versions_get(&versions) == TSR_OK) {
        print_version(versions.runtime, out->runtime);
        print_version(versions.driver, out->driver_version);
        print_long_version(versions.cublaslt, out->cublaslt);
    }
    if (out->library.nccl_version && out->library.nccl_version(&number) == 0)
        print_long_version(number, out->nccl);
}

static tsr_status count_gpus(cuda_facts *out)
{
    void *self;
    const char *reason = NULL;
    TSR_TRY(out->library.driver_create(NULL, NULL, &out->driver));
    TSR_TRY(tsr_device_driver_table(out->driver, &self)->count(self, &out->count, &reason));
    if (out->count == 0)
        snprintf(out->reason, sizeof out->reason, "%s", reason);
    return TSR_OK;
}

void cuda_gather(cuda_facts *out)
{
    memset(out, 0, sizeof *out);
    if (!cuda_library_open(&out->library, out->reason)) {
        if (errno == ENOMEM)
            say_memory_is_short();
        return;
    }
    gather_versions(out);
    const tsr_status status = count_gpus(out);
    if (status == TSR_ERROR_MEMORY)
        say_memory_is_short();
    if (status != TSR_OK) {
        out->count = 0;
        snprintf(out->reason, sizeof out->reason, "%s", tsr_status_message());
    }
}

static tsr_status describe_gpu(const cuda_facts *facts, int index, cuda_gpu *out)
{
    out->info.size = sizeof out->info;
    out->reaches = calloc((size_t)facts->count, 1);
    if (!out->reaches)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %d GPUs", facts->count);
    TSR_TRY(facts->library.device_describe(facts->driver, index, &out->info));
    for (int owner = 0; owner < facts->count; owner++) {
        int reaches;
        TSR_TRY(facts->library.reaches(facts->driver, index, owner, &reaches));
        out->reaches[owner] = reaches != 0;
    }
    return TSR_OK;
}

tsr_status cuda_describe_gpus(cuda_facts *facts)
{
    if (facts->count == 0)
        return TSR_OK;
    facts->gpus = calloc((size_t)facts->count, sizeof *facts->gpus);
    if (!facts->gpus)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %d GPUs", facts->count);
    for (int index = 0; index < facts->count; index++)
        TSR_TRY(describe_gpu(facts, index, &facts->gpus[index]));
    return TSR_OK;
}

void cuda_release(cuda_facts *facts)
{
    for (int i = 0; facts->gpus && i < facts->count; i++)
        free(facts->gpus[i].reaches);
    free(facts->gpus);
    tsr_device_driver_destroy(facts->driver);
    facts->gpus = NULL;
    facts->driver = NULL;
    facts->count = 0;
}
