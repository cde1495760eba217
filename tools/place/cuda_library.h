/** libtessera-cuda, opened at run time: the tool is not linked with it, and starts without mapping
 * CUDA. */
#ifndef TESSERA_TOOLS_PLACE_CUDA_LIBRARY_H
#define TESSERA_TOOLS_PLACE_CUDA_LIBRARY_H

#include <tessera/cuda.h>
#include <tessera/nccl.h>

#include <stdbool.h>

/** Bytes of the reason why the library cannot be opened. */
#define CUDA_REASON_BYTES 1100

/** Functions of libtessera-cuda, CUDA and NCCL, under their own names without the prefix. */
typedef struct cuda_library {
    tsr_status (*driver_create)(tsr_context *context, const tsr_cuda_options *options, tsr_device_driver **out);
    tsr_status (*versions_get)(tsr_cuda_versions *out);
    tsr_status (*device_describe)(const tsr_device_driver *driver, int index, tsr_cuda_device_info *out);
    tsr_status (*reaches)(const tsr_device_driver *driver, int index, int owner, int *reaches);
    int (*set_device)(int index); /**< cudaSetDevice() */
    /* The functions below are NULL in a library that was built without NCCL. */
    tsr_status (*nccl_id_create)(tsr_nccl_id *out);
    tsr_status (*comm_create_nccl)(int nranks, int rank, const tsr_nccl_id *id, const tsr_nccl_options *options,
                                   tsr_comm **out);
    int (*nccl_version)(int *version); /**< ncclGetVersion() */
} cuda_library;

/** Opens the library. Returns false, with the reason, if there is none or it is of another version;
 * errno is then ENOMEM for a lack of memory, else 0. The library stays open: CUDA cannot be
 * unloaded. */
bool cuda_library_open(cuda_library *out, char reason[CUDA_REASON_BYTES]);

#endif
