/* The CUDA device as a plug-in. */
#include <tessera/cuda.h>
#include <tessera/sys/library.h>

TSR_API tsr_device_plugin tessera_device;

tsr_status tessera_device(tsr_context *context, tsr_device_driver **out)
{
    return tsr_cuda_driver_create(context, NULL, out);
}
