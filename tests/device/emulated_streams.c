/*
 * Streams and events. Work is done only when a thread waits: what the wait needs, and by chance
 * other work that streams and events allow. A copy to host memory is as late as other work, since
 * the memory may be pinned; a copy from host memory reads it at once, since it may be pageable.
 */
#include "emulated_machine.h"

#include <stdlib.h>
#include <string.h>

pthread_mutex_t emulated_lock = PTHREAD_MUTEX_INITIALIZER;
struct CUstream_st *emulated_streams;
int emulated_host_wait_count, emulated_wait_count, emulated_launch_count;

static struct CUstream_st defaults[EMULATED_GPUS];
static uint64_t state = 1;

int emulated_draw(int below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)below);
}

static void begin_stream(cudaStream_t stream, int device)
{
    *stream = (struct CUstream_st){.device = device, .next = emulated_streams};
    stream->last = &stream->first;
    emulated_streams = stream;
}

cudaStream_t emulated_stream(cudaStream_t stream)
{
    if (stream)
        return stream;
    if (!defaults[emulated_device].last)
        begin_stream(&defaults[emulated_device], emulated_device);
    return &defaults[emulated_device];
}

static void let_go(cudaEvent_t event)
{
    if (--event->references > 0)
        return;
    free(event->tips.at);
    free(event);
}

static bool is_ready(const emulated_task *task)
{
    return task->run || task->records || task->event->met >= task->number;
}

/* Does the first task of a stream, which is ready. */
static void step(cudaStream_t stream)
{
    emulated_task *const task = stream->first;
    stream->first = task->next;
    if (!stream->first)
        stream->last = &stream->first;
    if (task->run) {
        task->run(task->argument);
        task->drop(task->argument);
    } else {
        if (task->records && task->event->met < task->number)
            task->event->met = task->number;
        let_go(task->event);
    }
    free(task);
}

/* Does one task that `stream` needs: its first, or if that waits for an event, one of the stream
 * that records the event. */
static void step_towards(cudaStream_t stream)
{
    while (!is_ready(stream->first))
        stream = stream->first->from;
    step(stream);
}

static void step_anywhere(void)
{
    for (cudaStream_t stream = emulated_streams; stream; stream = stream->next)
        if (stream->first && emulated_draw(2) && is_ready(stream->first))
            step(stream);
}

void emulated_drain(cudaStream_t stream)
{
    const bool lazily = emulated_draw(2);
    while (stream->first) {
        if (!lazily)
            step_anywhere();
        if (stream->first)
            step_towards(stream);
    }
}

static void append(cudaStream_t stream, const emulated_task *wanted)
{
    emulated_task *const task = malloc(sizeof *task);
    *task = *wanted;
    task->next = NULL;
    *stream->last = task;
    stream->last = &task->next;
}

cudaError_t emulated_add(cudaStream_t stream, void (*run)(const void *argument), void (*drop)(void *argument),
                         void *argument)
{
    if (stream->recording)
        return emulated_record(stream, run, drop, argument);
    append(stream, &(emulated_task){.run = run, .drop = drop, .argument = argument});
    return cudaSuccess;
}

int emulated_enqueue(void *stream, void (*run)(const void *argument), const void *argument, size_t bytes)
{
    void *const copy = malloc(bytes);
    memcpy(copy, argument, bytes);
    pthread_mutex_lock(&emulated_lock);
    const cudaError_t error = emulated_add(emulated_stream(stream), run, free, copy);
    pthread_mutex_unlock(&emulated_lock);
    return error != cudaSuccess;
}

static cudaError_t make_stream(cudaStream_t *out, bool blocking)
{
    const cudaStream_t made = malloc(sizeof *made);
    pthread_mutex_lock(&emulated_lock);
    begin_stream(made, emulated_device);
    made->blocking = blocking;
    pthread_mutex_unlock(&emulated_lock);
    emulated_count(1);
    *out = made;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    EMULATED_TURN();
    if (flags != cudaStreamNonBlocking)
        emulated_misuse("cudaStreamCreateWithFlags: a stream that the NULL stream waits for");
    return make_stream(out, false);
}

/* For tests, as the library does not create streams by this call. */
cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    EMULATED_TURN();
    return make_stream(out, true);
}

/* Does the stream's work at once, which the real runtime does later. */
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    pthread_mutex_lock(&emulated_lock);
    emulated_leave(stream);
    emulated_drain(stream);
    struct CUstream_st **at = &emulated_streams;
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    pthread_mutex_unlock(&emulated_lock);
    emulated_count(-1);
    free(stream);
    return emulated_turn(__func__);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    EMULATED_TURN();
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t waited = emulated_stream(stream);
    cudaError_t error = waited->device == emulated_device ? emulated_spoil(waited) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        emulated_drain(waited);
    emulated_host_wait_count++;
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

cudaError_t cudaDeviceSynchronize(void)
{
    EMULATED_TURN();
    pthread_mutex_lock(&emulated_lock);
    const cudaError_t error = emulated_spoil(NULL);
    for (cudaStream_t stream = emulated_streams; stream && error == cudaSuccess; stream = stream->next)
        if (stream->device == emulated_device)
            emulated_drain(stream);
    emulated_host_wait_count++;
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    EMULATED_TURN();
    if (flags != cudaEventDisableTiming)
        emulated_misuse("cudaEventCreateWithFlags: an event that takes the time");
    const cudaEvent_t made = malloc(sizeof *made);
    *made = (struct CUevent_st){.device = emulated_device, .references = 1};
    emulated_count(1);
    *out = made;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    pthread_mutex_lock(&emulated_lock);
    let_go(event);
    pthread_mutex_unlock(&emulated_lock);
    emulated_count(-1);
    return emulated_turn(__func__);
}

static void append_event(cudaStream_t stream, cudaEvent_t event, bool records)
{
    event->references++;
    append(stream,
           &(emulated_task){.event = event, .number = event->recorded, .records = records, .from = event->from});
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    EMULATED_TURN();
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t in = emulated_stream(stream);
    if (event->device != in->device)
        emulated_misuse("cudaEventRecord: an event and a stream of two devices");
    if (!emulated_record_captured(event, in, &error)) {
        event->recorded++;
        event->from = in;
        append_event(in, event, true);
    }
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

/* Waits for the last record; for nothing if there was none. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    EMULATED_TURN();
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t in = emulated_stream(stream);
    if (in->device != emulated_device || !event || flags != 0)
        emulated_misuse("cudaStreamWaitEvent: the stream of another device");
    if (!emulated_wait_captured(in, event, &error) && event->met < event->recorded)
        append_event(in, event, false);
    emulated_wait_count++;
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

/* A copy; bytes that were read at once follow it. */
typedef struct transfer {
    void *dst;
    const void *src;
    size_t bytes;
} transfer;

static void run_transfer(const void *argument)
{
    const transfer *const t = argument;
    memcpy(t->dst, t->src ? t->src : t + 1, t->bytes);
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    EMULATED_TURN();
    if (bytes == 0 || kind == cudaMemcpyHostToHost)
        emulated_misuse("cudaMemcpyAsync: nothing to copy");
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t in = emulated_stream(stream);
    if (in->device != emulated_device)
        emulated_misuse("cudaMemcpyAsync: the stream of another device");
    const bool at_once = kind == cudaMemcpyHostToDevice && !in->recording;
    transfer *const t = malloc(sizeof *t + (at_once ? bytes : 0));
    *t = (transfer){dst, at_once ? NULL : src, bytes};
    if (at_once)
        memcpy(t + 1, src, bytes);
    const cudaError_t error = emulated_add(in, run_transfer, free, t);
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

typedef struct launch {
    const char *kernel;
    unsigned blocks;
    void *arguments[2];
} launch;

static void run_launch(const void *argument)
{
    launch l = *(const launch *)argument;
    emulated_kernel(l.kernel, l.blocks, l.arguments);
}

static void drop_launch(void *argument)
{
    launch *const l = argument;
    for (int i = 0; i < 2; i++)
        free(l->arguments[i]);
    free(l);
}

/* Makes a launch with copies of the arguments, as the runtime does. */
static launch *make_launch(const char *kernel, unsigned blocks, void **arguments)
{
    launch *const l = malloc(sizeof *l);
    *l = (launch){kernel, blocks, {NULL, NULL}};
    for (int i = 0; i < 2; i++) {
        const size_t bytes = emulated_argument_bytes(kernel, i);
        if (bytes > 0)
            l->arguments[i] = memcpy(malloc(bytes), arguments[i], bytes);
    }
    return l;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 threads, void **arguments, size_t shared,
                             cudaStream_t stream)
{
    EMULATED_TURN();
    if (grid.x == 0 || grid.y != 1 || grid.z != 1 || threads.x != 256 || threads.y != 1 || threads.z != 1 ||
        shared != 0)
        emulated_misuse("cudaLaunchKernel: a grid that no kernel here wants");
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t in = emulated_stream(stream);
    if (in->device != emulated_device)
        emulated_misuse("cudaLaunchKernel: the stream of another device");
    emulated_launch_count++;
    const cudaError_t error = emulated_add(in, run_launch, drop_launch, make_launch(function, grid.x, arguments));
    pthread_mutex_unlock(&emulated_lock);
    return error;
}
