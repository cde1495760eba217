/* A backend of ggml: one stream of work on a device. It forwards graphs to a backend of ggml's CPU
 * device, on a worker's thread. */
#ifndef TSR_HOSTS_GGML_STREAM_H
#define TSR_HOSTS_GGML_STREAM_H

#include "hosts/ggml/cpu.h"
#include "hosts/ggml/worker.h"

#include <stdatomic.h>

typedef struct tsr_ggml_stream {
    struct ggml_backend backend;
    tsr_ggml_worker *worker;
    tsr_ggml_cpu functions;
    ggml_backend_t cpu;           /* computes; the worker uses it */
    struct ggml_threadpool *pool; /* the threads that help the worker */
    int groups;                   /* of how many communicators it is a member */
    _Atomic int failed;           /* the ggml_status of work that failed after its call had returned */
} tsr_ggml_stream;

/* A backend over one of the library's devices, for ggml_backend_free(). NULL: the log says why. */
ggml_backend_t tsr_ggml_stream_create(ggml_backend_dev_t device);

/* The stream that a backend is; NULL: it is another library's. */
tsr_ggml_stream *tsr_ggml_stream_of(ggml_backend_t backend);

/* Sets the number of threads that compute, at most the device's processors. */
void tsr_ggml_stream_set_threads(ggml_backend_t backend, int threads);

/* Sets the function that ggml asks, between nodes, whether to end a computation. */
void tsr_ggml_stream_set_abort(ggml_backend_t backend, ggml_abort_callback callback, void *data);

#endif
