/** Facts of CUDA on this machine: libraries, versions and GPUs. */
#ifndef TESSERA_TOOLS_PLACE_GPUS_H
#define TESSERA_TOOLS_PLACE_GPUS_H

#include "place/cuda_library.h"

#define CUDA_VERSION_BYTES 24

/** A GPU. `reaches`: a byte for each GPU of the machine, 1 if work on this GPU can access memory of
 * that one. */
typedef struct cuda_gpu {
    tsr_cuda_device_info info;
    unsigned char *reaches;
} cuda_gpu;

typedef struct cuda_facts {
    cuda_library library;           /**< all NULL if it cannot be opened */
    tsr_device_driver *driver;      /**< NULL without the library */
    int count;                      /**< number of GPUs */
    char reason[CUDA_REASON_BYTES]; /**< why there is no GPU; "" if there is one */
    /** Versions, as "13.0"; "" if unknown. */
    char runtime[CUDA_VERSION_BYTES], driver_version[CUDA_VERSION_BYTES], cublaslt[CUDA_VERSION_BYTES],
        nccl[CUDA_VERSION_BYTES];
    cuda_gpu *gpus; /**< `count` rows after cuda_describe_gpus(), else NULL */
} cuda_facts;

/** Gathers all but `gpus`. Never fails: out->reason says what is missing. The caller releases the
 * facts, when no memory or stream of the devices is left. */
void cuda_gather(cuda_facts *out);
void cuda_release(cuda_facts *facts);

/** Fills facts->gpus. */
tsr_status cuda_describe_gpus(cuda_facts *facts);

#endif
