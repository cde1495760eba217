#include "hosts/ggml/stream.h"

#include "hosts/ggml/device.h"
#include "hosts/ggml/snapshot.h"

#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>

/* A computation. */
typedef struct compute_job {
    tsr_ggml_job job;
    tsr_ggml_stream *stream;
    struct ggml_cgraph *graph;
    enum ggml_status *status; /* where its caller waits for it; NULL: graph and job are the job's own */
} compute_job;

/* Makes the worker's helpers anew. */
typedef struct threads_job {
    tsr_ggml_job job;
    tsr_ggml_stream *stream;
    int threads;
} threads_job;

static tsr_ggml_device *device_of(const tsr_ggml_stream *stream)
{
    return stream->backend.device->context;
}

static const char *get_name(ggml_backend_t backend)
{
    return device_of(backend->context)->name;
}

static void free_pool(tsr_ggml_stream *stream)
{
    if (stream->pool)
        stream->functions.free_pool(stream->pool);
    stream->pool = NULL;
}

/* Threads inherit the processors of the worker, so it makes them. */
static void run_threads(tsr_ggml_job *job)
{
    const threads_job *const self = (threads_job *)job;
    tsr_ggml_stream *const stream = self->stream;
    const tsr_ggml_cpu *const functions = &stream->functions;
    struct ggml_threadpool_params params = ggml_threadpool_params_default(self->threads);
    functions->set_pool(stream->cpu, NULL);
    free_pool(stream);
    stream->pool = functions->new_pool(&params);
    functions->set_pool(stream->cpu, stream->pool);
    functions->set_threads(stream->cpu, self->threads);
}

void tsr_ggml_stream_set_threads(ggml_backend_t backend, int threads)
{
    tsr_ggml_stream *const stream = backend->context;
    const int most = device_of(stream)->place.processor_count;
    threads_job job = {{NULL, run_threads}, stream, threads < 1 ? 1 : threads < most ? threads : most};
    tsr_ggml_worker_give(stream->worker, &job.job);
    tsr_ggml_worker_wait(stream->worker);
}

void tsr_ggml_stream_set_abort(ggml_backend_t backend, ggml_abort_callback callback, void *data)
{
    const tsr_ggml_stream *const stream = backend->context;
    tsr_ggml_worker_wait(stream->worker);
    stream->functions.set_abort(stream->cpu, callback, data);
}

static void synchronize(ggml_backend_t backend)
{
    tsr_ggml_worker_wait(((tsr_ggml_stream *)backend->context)->worker);
}

static void free_stream(ggml_backend_t backend)
{
    tsr_ggml_stream *const stream = backend->context;
    tsr_ggml_worker_destroy(stream->worker);
    if (stream->cpu)
        ggml_backend_free(stream->cpu);
    free_pool(stream);
    free(stream);
}

static void run_compute(tsr_ggml_job *job)
{
    compute_job *const self = (compute_job *)job;
    const enum ggml_status status = ggml_backend_graph_compute(self->stream->cpu, self->graph);
    if (self->status) {
        *self->status = status;
        return;
    }
    if (status != GGML_STATUS_SUCCESS)
        atomic_store(&self->stream->failed, status);
    free(self->graph);
    free(self);
}

/* A member of a communicator computes while its caller goes on to the other members. */
static enum ggml_status begin_compute(tsr_ggml_stream *stream, const struct ggml_cgraph *graph)
{
    compute_job *const job = malloc(sizeof *job);
    struct ggml_cgraph *const copy = job ? tsr_ggml_snapshot(graph) : NULL;
    if (!copy) {
        free(job);
        return GGML_STATUS_ALLOC_FAILED;
    }
    *job = (compute_job){{NULL, run_compute}, stream, copy, NULL};
    tsr_ggml_worker_give(stream->worker, &job->job);
    return GGML_STATUS_SUCCESS;
}

static enum ggml_status graph_compute(ggml_backend_t backend, struct ggml_cgraph *graph)
{
    tsr_ggml_stream *const stream = backend->context;
    enum ggml_status status = (enum ggml_status)atomic_exchange(&stream->failed, GGML_STATUS_SUCCESS);
    if (status != GGML_STATUS_SUCCESS)
        return status;
    if (stream->groups > 0)
        return begin_compute(stream, graph);
    compute_job job = {{NULL, run_compute}, stream, graph, &status};
    tsr_ggml_worker_give(stream->worker, &job.job);
    tsr_ggml_worker_wait(stream->worker);
    return status;
}

static void set_tensor_async(ggml_backend_t backend, struct ggml_tensor *tensor, const void *data, size_t offset,
                             size_t size)
{
    synchronize(backend);
    ggml_backend_tensor_set(tensor, data, offset, size);
}

static void get_tensor_async(ggml_backend_t backend, const struct ggml_tensor *tensor, void *data, size_t offset,
                             size_t size)
{
    synchronize(backend);
    ggml_backend_tensor_get(tensor, data, offset, size);
}

static const struct ggml_backend_i backend_functions = {
    .get_name = get_name,
    .free = free_stream,
    .set_tensor_async = set_tensor_async,
    .get_tensor_async = get_tensor_async,
    .synchronize = synchronize,
    .graph_compute = graph_compute,
};

static ggml_guid_t guid(void)
{
    static const ggml_guid id = {'t', 'e', 's', 's', 'e', 'r', 'a', '-', 'g', 'g', 'm', 'l', 0, 0, 0, 1};
    return (ggml_guid_t)&id;
}

ggml_backend_t tsr_ggml_stream_create(ggml_backend_dev_t device)
{
    const tsr_ggml_place *const place = &((const tsr_ggml_device *)device->context)->place;
    tsr_ggml_cpu functions;
    if (!tsr_ggml_cpu_find(&functions)) {
        GGML_LOG_ERROR("tessera: ggml has not loaded its CPU backend, which computes for %s. Call "
                       "ggml_backend_load_all() first\n",
                       ggml_backend_dev_name(device));
        return NULL;
    }
    tsr_ggml_stream *const stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->backend = (struct ggml_backend){guid(), backend_functions, device, stream};
    stream->functions = functions;
    stream->worker = tsr_ggml_worker_create(&place->processors);
    stream->cpu = stream->worker ? ggml_backend_dev_init(tsr_ggml_cpu_device(), NULL) : NULL;
    if (!stream->cpu) {
        GGML_LOG_ERROR("tessera: there are not enough threads or memory for %s\n", ggml_backend_dev_name(device));
        free_stream(&stream->backend);
        return NULL;
    }
    tsr_ggml_stream_set_threads(&stream->backend, place->processor_count);
    return &stream->backend;
}

tsr_ggml_stream *tsr_ggml_stream_of(ggml_backend_t backend)
{
    return backend && ggml_guid_matches(backend->guid, guid()) ? backend->context : NULL;
}
