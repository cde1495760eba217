/** All functions of NCCL and of the CUDA runtime that the engine calls, as one table, so that tests
 * can put a stand-in in its place. */
#ifndef TSR_COMM_ENGINES_NCCL_API_H
#define TSR_COMM_ENGINES_NCCL_API_H

#include <nccl.h>

#include <cuda_runtime_api.h>

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < NCCL_VERSION(2, 18, 0)
#error                                                                                                                 \
    "Tessera needs the headers of NCCL 2.18 or newer, where communicators can be split; configure with -Dcuda=disabled to do without"
#endif

/** Entries are named after the functions; those of CUDA begin with cuda_. */
typedef struct tsr_nccl_api {
    ncclResult_t (*get_version)(int *version);
    ncclResult_t (*get_unique_id)(ncclUniqueId *id);
    ncclResult_t (*comm_init_rank_config)(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
    ncclResult_t (*comm_split)(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config);
    ncclResult_t (*comm_finalize)(ncclComm_t comm);
    ncclResult_t (*comm_destroy)(ncclComm_t comm);
    ncclResult_t (*comm_abort)(ncclComm_t comm);
    ncclResult_t (*comm_get_async_error)(ncclComm_t comm, ncclResult_t *error);
    ncclResult_t (*comm_count)(const ncclComm_t comm, int *count);
    ncclResult_t (*comm_user_rank)(const ncclComm_t comm, int *rank);
    ncclResult_t (*comm_cu_device)(const ncclComm_t comm, int *device);
    const char *(*get_error_string)(ncclResult_t result);
    const char *(*get_last_error)(ncclComm_t comm);

    ncclResult_t (*group_start)(void);
    ncclResult_t (*group_end)(void);
    ncclResult_t (*send)(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                         cudaStream_t stream);
    ncclResult_t (*recv)(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*all_gather)(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                               cudaStream_t stream);
    ncclResult_t (*reduce_scatter)(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                   ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*all_reduce)(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                               ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*broadcast)(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                              ncclComm_t comm, cudaStream_t stream);

    cudaError_t (*cuda_get_device_count)(int *count);
    cudaError_t (*cuda_get_device)(int *device);
    cudaError_t (*cuda_set_device)(int device);
    cudaError_t (*cuda_stream_create_with_flags)(cudaStream_t *stream, unsigned flags);
    cudaError_t (*cuda_stream_destroy)(cudaStream_t stream);
    cudaError_t (*cuda_stream_query)(cudaStream_t stream);
    cudaError_t (*cuda_stream_is_capturing)(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
    cudaError_t (*cuda_stream_wait_event)(cudaStream_t stream, cudaEvent_t event, unsigned flags);
    cudaError_t (*cuda_event_create_with_flags)(cudaEvent_t *event, unsigned flags);
    cudaError_t (*cuda_event_destroy)(cudaEvent_t event);
    cudaError_t (*cuda_event_record)(cudaEvent_t event, cudaStream_t stream);
    cudaError_t (*cuda_malloc_host)(void **memory, size_t bytes);
    cudaError_t (*cuda_free_host)(void *memory);
    cudaError_t (*cuda_get_last_error)(void);
    const char *(*cuda_get_error_name)(cudaError_t error);
    const char *(*cuda_get_error_string)(cudaError_t error);
} tsr_nccl_api;

/** The table with the functions of libnccl and libcudart. */
extern const tsr_nccl_api tsr_nccl_library;

#endif
