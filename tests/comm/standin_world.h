/** Internals of the stand-in: one lock, streams of work, memory that GPUs reach. */
#ifndef TESTS_STANDIN_WORLD_H
#define TESTS_STANDIN_WORLD_H

#include "standin.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

enum { STANDIN_DEVICES = 16 };

/** A piece of work in a stream. */
typedef struct standin_work {
    struct standin_work *next;
    bool (*step)(struct standin_work *work); /**< tries to do the work, called under the lock when it is first in its
                                                stream; true: done, and freed */
    /** copies the work, for launches of graphs; NULL: graphs cannot hold it */
    struct standin_work *(*clone)(const struct standin_work *work);
    void (*drop)(struct standin_work *work); /**< frees its members; NULL: there are none */
} standin_work;

/** A cudaStream_t. */
struct CUstream_st {
    struct CUstream_st *next;
    int device;
    bool gone; /**< destroyed: removed when its work is done */
    standin_work *first, **last;
    struct standin_graph *capture; /**< the graph that records it; NULL if none does */
};

/** A cudaEvent_t; it is done when `met` has reached `recorded`. */
struct CUevent_st {
    struct CUevent_st *next;
    bool gone; /**< destroyed: work may still refer to it */
    int64_t recorded, met;
};

/** Memory that a GPU reaches; `device` is -1 for host memory, which all reach. */
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
    bool stirred; /**< something has changed since standin_drive() */
    int devices, version;
    struct CUstream_st defaults[STANDIN_DEVICES];
    struct CUstream_st *streams;
    struct CUevent_st *events;
    standin_block *blocks;
    /** kernels of each device that are not done, in the order of issue */
    struct standin_kernel *running[STANDIN_DEVICES];
    int aborted, kernels;
    char misuse[512], last_error[256];
} standin_world;

extern standin_world standin;

void standin_lock(void);
void standin_unlock(void);

/** A random number from 0 to below - 1. */
uint64_t standin_draw(uint64_t below);

/** Records a misuse, if it is the first. Under the lock. */
void standin_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** This thread's current device. */
int standin_device(void);

/** The stream of a handle on `device`; NULL after complaining. Under the lock. */
struct CUstream_st *standin_stream(cudaStream_t stream, int device, const char *call);

/** Adds work, allocated by calloc(), to the end of a stream, or to the graph that records the
 * stream. Under the lock. */
void standin_enqueue(struct CUstream_st *stream, standin_work *work);

/** Adds work to a graph. Under the lock. */
void standin_record(struct standin_graph *graph, standin_work *work, const char *where);

/** Complains if a stream of the device is being recorded. Under the lock. */
void standin_refuse_capture(int device, const char *call);

/** The counts of this thread. */
extern _Thread_local standin_tally standin_done;

/** Does all work that can be done, in a random order. Under the lock. */
void standin_drive(void);

/** Allocates memory of a device, or of the host for -1; standin_release() returns false for other
 * memory. Under the lock. */
void *standin_allocate(size_t bytes, int device);
bool standin_release(void *memory);

/** True if `device` reaches all of the memory. Under the lock. */
bool standin_reaches(int device, const void *memory, size_t bytes);

/** True, once, if standin_fail_call() makes this thread's `call` fail. */
bool standin_fails(const char *call);

/** Streams and events, also for the driver. */
cudaError_t standin_event_create(cudaEvent_t *event, unsigned flags);
cudaError_t standin_event_destroy(cudaEvent_t event);
cudaError_t standin_event_record(cudaEvent_t event, cudaStream_t stream);
cudaError_t standin_stream_wait_event(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t standin_stream_create(cudaStream_t *stream, unsigned flags);
cudaError_t standin_stream_destroy(cudaStream_t stream);
cudaError_t standin_stream_query(cudaStream_t stream);

/** Frees all communicators; returns the number that were not destroyed. Under the lock. */
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
ncclResult_t standin_send(const void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t standin_recv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                          cudaStream_t stream);
ncclResult_t standin_all_gather(const void *send, void *receive, size_t count, ncclDataType_t type, ncclComm_t comm,
                                cudaStream_t stream);
ncclResult_t standin_reduce_scatter(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                    ncclComm_t comm, cudaStream_t stream);
ncclResult_t standin_all_reduce(const void *send, void *receive, size_t count, ncclDataType_t type, ncclRedOp_t op,
                                ncclComm_t comm, cudaStream_t stream);
ncclResult_t standin_broadcast(const void *send, void *receive, size_t count, ncclDataType_t type, int root,
                               ncclComm_t comm, cudaStream_t stream);

#endif
