/*
 * The functions of libtessera-cuda that the tool calls, over the stand-in for NCCL, with a world of
 * four GPUs that begins when the library is opened. Misuse of NCCL, or objects left at the end, end
 * the program with a sentence.
 */
#include "../../comm/standin.h"

#include <tessera/cuda.h>

#include <stdio.h>
#include <unistd.h>

enum { GPUS = 4, SEED = 20261121, EXIT_MISUSE = 70 };

__attribute__((constructor)) static void begin(void)
{
    standin_begin(GPUS, SEED);
}

__attribute__((destructor)) static void end(void)
{
    const char *const misuse = standin_end();
    if (!misuse)
        return;
    fprintf(stderr, "stand-in for NCCL: %s\n", misuse);
    _exit(EXIT_MISUSE);
}

tsr_status tsr_cuda_driver_create(tsr_context *context, const tsr_cuda_options *options, tsr_device_driver **out)
{
    (void)context;
    (void)options;
    return standin_driver_create(out);
}

tsr_status tsr_cuda_versions_get(tsr_cuda_versions *out)
{
    out->built = out->runtime = out->driver = CUDART_VERSION;
    out->cublaslt = 0;
    return TSR_OK;
}

tsr_status tsr_cuda_device_describe(const tsr_device_driver *driver, int index, tsr_cuda_device_info *out)
{
    (void)driver;
    snprintf(out->name, sizeof out->name, "stand-in %d", index);
    out->major = 9;
    out->minor = 0;
    out->multiprocessors = 1;
    out->memory_bytes = (int64_t)1 << 30;
    return TSR_OK;
}

tsr_status tsr_cuda_reaches(const tsr_device_driver *driver, int index, int owner, int *reaches)
{
    (void)driver;
    (void)index;
    (void)owner;
    *reaches = 1;
    return TSR_OK;
}

cudaError_t cudaSetDevice(int device)
{
    return standin_api.cuda_set_device(device);
}

ncclResult_t ncclGetVersion(int *number)
{
    return standin_api.get_version(number);
}
