/** The inside of the stand-in: one lock, streams of work, memory that GPUs reach. */
#ifndef TESTS_STANDIN_WORLD_H
#define TESTS_STANDIN_WORLD_H

#include "standin.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { STANDIN_DEVICES = 16 };

/** What a stream holds. */
typedef struct standin_work {
    struct standin_work *next;
    bool (*step)(struct standin_work *work); /**< under the lock, when it is first in its stream; true: it is done, and freed then */
    struct standin_work *(*clone)(const struct standin_work *work); /**< the same again, to be enqueued; NULL: graphs do not hold it */
    void (*drop)(struct standin_work *work);                        /**< frees what belongs to it; NULL: nothing does */
} standin_work;

/** A cudaStream_t. */
struct CUstream_st {
    struct CUstream_st *next;
    int device;
    bool gone; /**< destroyed: it goes when its work is done */
    standin_work *first, **last;
    struct standin_graph *capture; /**< what records it; or NULL */
};

/** A cudaEvent_t: done when as many records were met as were made. */
struct CUevent_st {
    struct CUevent_st *next;
    bool gone; /**< destroyed: work may still refer to it */
    int64_t recorded, met;
};

/** Memory that a GPU reaches; `device` -1: of the host, which all reach. */
typedef struct standin_block {
    struct standin_block *next;
    char *at;
    size_t bytes;
    int device;
} standin_block;

typedef struct standin_world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t random;
    bool stirred; /**< something has changed since streams were driven */
    int devices, version;
    struct CUstream_st defaults[STANDIN_DEVICES];
    struct CUstream_st *streams;
    struct CUevent_st *events;
    standin_block *blocks;
    struct standin_kernel *running[STANDIN_DEVICES]; /**< kernels that were issued and are not done, in that order */
    int aborted, kernels;
    char misuse[512], last_error[256];
} standin_world;

extern standin_world standin;

void standin_lock(void);
void standin_unlock(void);

/** 0 .. below - 1 */
uint64_t standin_draw(uint64_t below);

/** Remembers the first one. Under the lock. */
void standin_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** This thread's current device. */
int standin_device(void);

/** The stream that a handle of `device` means, or NULL after complaining. Under the lock. */
struct CUstream_st *standin_stream(cudaStream_t stream, int device, const char *call);

/** Adds work, which is calloc()ed, to the end of a stream, or to the graph that records it. Under the lock. */
void standin_enqueue(struct CUstream_st *stream, standin_work *work);

/** Adds work to a graph. Under the lock. */
void standin_record(struct standin_graph *graph, standin_work *work, const char *where);

/** Complains if a stream of the device is being recorded. Under the lock. */
void standin_refuse_capture(int device, const char *call);

/** What this thread has done. */
extern _Thread_local standin_tally standin_done;

/** Does what can be done, in some order. Under the lock. */
void standin_drive(void);

/** Memory of a device, or of the host for -1. Under the lock. */
void *standin_allocate(size_t bytes, int device);
bool standin_release(void *memory);

/** Whether `device` reaches all of it. Under the lock. */
bool standin_reaches(int device, const void *memory, size_t bytes);

/** True once if this thread is to fail at `call`. */
bool standin_fails(const char *call);

/** The streams and events of the driver. */
cudaError_t standin_event_create(cudaEvent_t *event, unsigned flags);
cudaError_t standin_event_destroy(cudaEvent_t event);
cudaError_t standin_event_record(cudaEvent_t event, cudaStream_t stream);
cudaError_t standin_stream_wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t standin_stream_create(cudaStream_t *stream, unsigned flags);
cudaError_t standin_stream_destroy(cudaStream_t stream);
cudaError_t standin_stream_query(cudaStream_t stream);

/** What is left of communicators, freed; how many were not destroyed. Under the lock. */
int standin_free_comms(void);

/** NCCL's part of the table, in standin_comm.c and standin_group.c. */
ncclResult_t standin_get_unique_id(ncclUniqueId *id);
ncclResult_t standin_comm_init(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config);
ncclResult_t standin_comm_split(ncclComm_t comm, int color, int key, ncclComm_t *out, ncclConfig_t *config);
ncclResult_t standin_comm_finalize(ncclComm_t comm);
ncclResult_t standin_comm_destroy(ncclComm_t comm);
ncclResult_t standin_comm_abort(ncclComm_t comm);
ncclResult_t standin_comm_get_async_error(ncclComm_t comm, ncclResult_t *error);
ncclResult_t standin_comm_count(const ncclComm_t comm, int *count);
ncclResult_t standin_comm_user_rank(const ncclComm_t comm, int *rank);
ncclResult_t standin_comm_cu_device(const ncclComm_t comm, int *device);
ncclResult_t standin_group_start(void);
ncclResult_t standin_group_end(void);
ncclResult_t standin_send(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t standin_recv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream);
ncclResult_t standin_all_gather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream);
ncclResult_t standin_reduce_scatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                    cudaStream_t stream);
ncclResult_t standin_all_reduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                cudaStream_t stream);
ncclResult_t standin_broadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                               cudaStream_t stream);

#endif
