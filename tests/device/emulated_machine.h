/** Internals of the emulated machine: streams of tasks, captures that record them, and failing
 * calls. */
#ifndef TESTS_DEVICE_EMULATED_MACHINE_H
#define TESTS_DEVICE_EMULATED_MACHINE_H

#include "device/cuda/runtime.h"
#include "emulated_gpu.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct emulated_recording emulated_recording;

/** A task in a stream. */
typedef struct emulated_task {
    struct emulated_task *next;
    void (*run)(const void *argument); /**< NULL: the task records or awaits an event */
    void (*drop)(void *argument);      /**< frees the argument */
    void *argument;
    cudaEvent_t event;
    int64_t number; /**< number of the event's record */
    bool records;
    cudaStream_t from; /**< stream in which the awaited record was enqueued */
} emulated_task;

/** A set of nodes of a graph, by number, ascending. */
typedef struct emulated_nodes {
    int *at;
    int count;
} emulated_nodes;

struct CUstream_st {
    struct CUstream_st *next;
    int device;
    bool blocking; /**< the default stream of its device waits for it; only captures take this into account here */
    emulated_task *first, **last;
    emulated_recording *recording; /**< the capture that records its work; NULL if none does */
    emulated_nodes tips;           /**< nodes that the next captured work follows */
};

struct CUevent_st {
    int device, references;
    int64_t recorded, met;
    cudaStream_t from;
    unsigned long long capture; /**< the capture in which it was recorded last; 0: none */
    emulated_nodes tips;
};

/** Protects streams, events, captures and graphs; tasks run under it. */
extern pthread_mutex_t emulated_lock;

/** The calling thread's device. */
extern _Thread_local int emulated_device;

/** Fails the test for a misuse that the real runtime might not report. */
void emulated_misuse(const char *what) __attribute__((noreturn));

/** Counts a call; returns the error that it must return. */
cudaError_t emulated_turn(const char *name);

/** Returns from the emulated call if it is to fail. */
#define EMULATED_TURN()                                                                                                \
    do {                                                                                                               \
        const cudaError_t error_ = emulated_turn(__func__);                                                            \
        if (error_ != cudaSuccess)                                                                                     \
            return error_;                                                                                             \
    } while (0)

/** A random number from 0 to below - 1. */
int emulated_draw(int below);

/** The numbers of waits of the host, of waits of streams for events, and of kernels launched. */
extern int emulated_host_wait_count, emulated_wait_count, emulated_launch_count;

/** The stream of a handle; for NULL, the default stream of the thread's device. Under the lock. */
cudaStream_t emulated_stream(cudaStream_t stream);

/** Adds a task to a stream, or to the capture that records it; takes ownership of the argument.
 * Under the lock. */
cudaError_t emulated_add(cudaStream_t stream, void (*run)(const void *argument), void (*drop)(void *argument),
                         void *argument);

/** Does the work of `stream`, and other work that can be done meanwhile, in a random order. Under
 * the lock. */
void emulated_drain(cudaStream_t stream);

/** Adds a node to the capture of a stream; fails if the capture is invalidated. Under the lock. */
cudaError_t emulated_record(cudaStream_t stream, void (*run)(const void *argument), void (*drop)(void *argument),
                            void *argument);

/** If the stream (for NULL, any stream of the device) is captured, or another capture forbids this
 * thread to wait or allocate, invalidates the captures and returns
 * cudaErrorStreamCaptureUnsupported. Under the lock. */
cudaError_t emulated_spoil(cudaStream_t stream);

/** Record and await an event in captures. True if the call is complete, with its result in
 * `*error`. Under the lock. */
bool emulated_record_captured(cudaEvent_t event, cudaStream_t stream, cudaError_t *error);
bool emulated_wait_captured(cudaStream_t stream, cudaEvent_t event, cudaError_t *error);

/** Ends the capture of a stream that is destroyed. Under the lock. */
void emulated_leave(cudaStream_t stream);

/** All streams, default ones included. */
extern struct CUstream_st *emulated_streams;

void emulated_nodes_copy(emulated_nodes *to, const emulated_nodes *from);

#endif
