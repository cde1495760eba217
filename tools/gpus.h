/** What there is of CUDA, found out through libtessera-cuda, which is opened for that: the tool is not linked with it. */
#ifndef TESSERA_TOOLS_GPUS_H
#define TESSERA_TOOLS_GPUS_H

#include <tessera/cuda.h>

#define CUDA_REASON_BYTES  1100
#define CUDA_VERSION_BYTES 24

/** `reaches`: one byte a GPU, whether work here may use what lies there. */
typedef struct cuda_gpu {
    tsr_cuda_device_info info;
    unsigned char *reaches;
} cuda_gpu;

typedef struct cuda_facts {
    int count;
    cuda_gpu *gpus;
    char reason[CUDA_REASON_BYTES];                                                         /**< why there is none; "" if there are some */
    char runtime[CUDA_VERSION_BYTES], driver[CUDA_VERSION_BYTES], nccl[CUDA_VERSION_BYTES]; /**< "13.0"; "" where there is none */
} cuda_facts;

/** Never fails: what cannot be found out is a reason. */
void cuda_gather(cuda_facts *out);

void cuda_release(cuda_facts *facts);

#endif
