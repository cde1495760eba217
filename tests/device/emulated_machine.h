/** The inside of the emulated machine: streams of tasks, the capture that may record them, and how calls fail. */
#ifndef TESTS_DEVICE_EMULATED_MACHINE_H
#define TESTS_DEVICE_EMULATED_MACHINE_H

#include "device/cuda/runtime.h"
#include "emulated_gpu.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct emulated_recording emulated_recording;

/** What a stream holds. */
typedef struct emulated_task {
    struct emulated_task *next;
    void (*run)(const void *argument); /**< NULL: an event is recorded or awaited */
    void (*drop)(void *argument);      /**< frees the argument */
    void *argument;
    cudaEvent_t event;
    int64_t number; /**< of the record */
    bool records;
    cudaStream_t from; /**< where a record that is awaited was enqueued */
} emulated_task;

/** Nodes of a graph, by number, ascending. */
typedef struct emulated_nodes {
    int *at;
    int count;
} emulated_nodes;

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    bool blocking; /**< the default stream of its device waits for it, of which captures alone are aware here */
    emulated_task *first, **last;
    emulated_recording *recording; /**< by which what it is given is captured; or NULL */
    emulated_nodes tips;           /**< what comes next there follows these */
};

struct CUevent_st {
    int device, references;
    int64_t recorded, met;
    cudaStream_t from;
    unsigned long long capture; /**< in which it was recorded last; 0: in none */
    emulated_nodes tips;
};

/** Under it are streams, events, captures and graphs, and tasks run. */
extern pthread_mutex_t emulated_lock;

/** The calling thread's device. */
extern _Thread_local int emulated_device;

/** A misuse that the real runtime might let pass. */
void emulated_misuse(const char *what) __attribute__((noreturn));

/** The next call, of that name: the error that it is to return. */
cudaError_t emulated_turn(const char *name);

/** Returns what the call that this stands in is to fail with. */
#define EMULATED_TURN()                                                                                                                    \
    do {                                                                                                                                   \
        const cudaError_t error_ = emulated_turn(__func__);                                                                                \
        if (error_ != cudaSuccess)                                                                                                         \
            return error_;                                                                                                                 \
    } while (0)

/** 0 to below - 1. */
int emulated_draw(int below);

/** How often the host waited, streams were made to wait for events, and kernels were launched. */
extern int emulated_host_wait_count, emulated_wait_count, emulated_launch_count;

/** The stream that a handle means, of the thread's device for NULL. Under the lock. */
cudaStream_t emulated_stream(cudaStream_t stream);

/** Puts a task at the end of a stream, or of the capture that records it; the argument is the stream's from then on. Under the lock. */
cudaError_t emulated_add(cudaStream_t stream, void (*run)(const void *argument), void (*drop)(void *argument), void *argument);

/** Does what `stream` holds, and whatever else may be done meanwhile, in some order. Under the lock. */
void emulated_drain(cudaStream_t stream);

/** A capture of a stream: adds a node; fails if the capture was spoilt. Under the lock. */
cudaError_t emulated_record(cudaStream_t stream, void (*run)(const void *argument), void (*drop)(void *argument), void *argument);

/** cudaErrorStreamCaptureUnsupported, and the capture spoilt, if the stream (any of the device, for NULL) is captured. Under the lock. */
cudaError_t emulated_spoil(cudaStream_t stream);

/** What events do to captures. True: that was all, with its result in `*error`. Under the lock. */
bool emulated_record_captured(cudaEvent_t event, cudaStream_t stream, cudaError_t *error);
bool emulated_wait_captured(cudaStream_t stream, cudaEvent_t event, cudaError_t *error);

/** A stream that goes takes its capture along. Under the lock. */
void emulated_leave(cudaStream_t stream);

/** All streams, the default ones too. */
extern struct CUstream_st *emulated_streams;

void emulated_nodes_copy(emulated_nodes *to, const emulated_nodes *from);

#endif
