/** What there is of CUDA on this machine. */
#ifndef TESSERA_TOOLS_PLACE_GPUS_H
#define TESSERA_TOOLS_PLACE_GPUS_H

#include "place/cuda_library.h"

#define CUDA_VERSION_BYTES 24

/** `reaches`: one byte a GPU, whether work here may use what lies there. */
typedef struct cuda_gpu {
    tsr_cuda_device_info info;
    unsigned char *reaches;
} cuda_gpu;

typedef struct cuda_facts {
    cuda_library library;           /**< all NULL where there is none */
    tsr_device_driver *driver;      /**< likewise */
    int count;                      /**< GPUs */
    char reason[CUDA_REASON_BYTES]; /**< why there is none; "" if there are some */
    /** "13.0"; "" where there is none */
    char runtime[CUDA_VERSION_BYTES], driver_version[CUDA_VERSION_BYTES], cublaslt[CUDA_VERSION_BYTES], nccl[CUDA_VERSION_BYTES];
    cuda_gpu *gpus; /**< of cuda_describe_gpus(), else NULL */
} cuda_facts;

/** Never fails: what cannot be found out is a reason. The caller releases what was gathered, when nothing lives on its devices. */
void cuda_gather(cuda_facts *out);
void cuda_release(cuda_facts *facts);

/** Fills `gpus`, one row a GPU. */
tsr_status cuda_describe_gpus(cuda_facts *facts);

#endif
