/*
 * Captures and graphs, by the rules of the programming guide: a capture begins with one stream and
 * spreads to streams that wait for its events; at its end their work must have been joined to the
 * first stream; within it, waits, allocations and references to outside work are forbidden.
 */
#include "emulated_machine.h"

#include <stdlib.h>
#include <string.h>

typedef struct node {
    void (*run)(const void *argument);
    void (*drop)(void *argument);
    void *argument;
    emulated_nodes needs; /* nodes that come before */
} node;

struct CUgraph_st {
    node *nodes;
    int count, capacity;
    int references; /* handles, and launches in progress */
};

struct CUgraphExec_st {
    cudaGraph_t graph;
};

struct emulated_recording {
    unsigned long long id;
    cudaStream_t origin;
    enum cudaStreamCaptureMode mode;
    pthread_t thread;
    bool spoilt;
    cudaGraph_t graph;
};

static unsigned long long captures;

void emulated_nodes_copy(emulated_nodes *to, const emulated_nodes *from)
{
    int *const at = malloc((size_t)from->count * sizeof *at + 1);
    if (from->count > 0)
        memcpy(at, from->at, (size_t)from->count * sizeof *at);
    free(to->at);
    *to = (emulated_nodes){at, from->count};
}

static bool contains(const emulated_nodes *nodes, int number)
{
    for (int i = 0; i < nodes->count; i++)
        if (nodes->at[i] == number)
            return true;
    return false;
}

static void add_nodes(emulated_nodes *to, const emulated_nodes *from)
{
    to->at = realloc(to->at, (size_t)(to->count + from->count) * sizeof *to->at + 1);
    for (int i = 0; i < from->count; i++)
        if (!contains(to, from->at[i]))
            to->at[to->count++] = from->at[i];
}

static void release(cudaGraph_t graph)
{
    if (--graph->references > 0)
        return;
    for (int i = 0; i < graph->count; i++) {
        graph->nodes[i].drop(graph->nodes[i].argument);
        free(graph->nodes[i].needs.at);
    }
    free(graph->nodes);
    free(graph);
}

cudaError_t emulated_record(cudaStream_t stream, void (*run)(const void *argument), void (*drop)(void *argument),
                            void *argument)
{
    if (stream->recording->spoilt) {
        drop(argument);
        return cudaErrorStreamCaptureInvalidated;
    }
    const cudaGraph_t graph = stream->recording->graph;
    if (graph->count == graph->capacity) {
        graph->capacity = 2 * graph->capacity + 8;
        graph->nodes = realloc(graph->nodes, (size_t)graph->capacity * sizeof *graph->nodes);
    }
    int number = graph->count++;
    graph->nodes[number] = (node){run, drop, argument, {NULL, 0}};
    emulated_nodes_copy(&graph->nodes[number].needs, &stream->tips);
    emulated_nodes_copy(&stream->tips, &(emulated_nodes){&number, 1});
    return cudaSuccess;
}

/* True if a capture forbids this thread calls that could wait or allocate, on any stream. */
static bool forbids(const emulated_recording *recording)
{
    return recording->mode == cudaStreamCaptureModeGlobal ||
           (recording->mode == cudaStreamCaptureModeThreadLocal && pthread_equal(recording->thread, pthread_self()));
}

/* Invalidates the captures that forbid a call, and those of streams of which `reaches` is true. */
static cudaError_t spoil(bool (*reaches)(cudaStream_t s, cudaStream_t stream), cudaStream_t stream)
{
    cudaError_t error = cudaSuccess;
    for (cudaStream_t s = emulated_streams; s; s = s->next)
        if (s->recording && (forbids(s->recording) || reaches(s, stream))) {
            s->recording->spoilt = true;
            error = cudaErrorStreamCaptureUnsupported;
        }
    return error;
}

static bool is_of_device(cudaStream_t s, cudaStream_t stream)
{
    return stream ? s == stream : s->device == emulated_device;
}

static bool is_none(cudaStream_t s, cudaStream_t stream)
{
    (void)s;
    (void)stream;
    return false;
}

cudaError_t emulated_spoil(cudaStream_t stream)
{
    return spoil(is_of_device, stream);
}

static void leave(cudaStream_t stream)
{
    stream->recording = NULL;
    free(stream->tips.at);
    stream->tips = (emulated_nodes){NULL, 0};
}

/* Ends a capture for all its streams; returns its graph, with one reference for the caller. */
static cudaGraph_t end(emulated_recording *recording)
{
    const cudaGraph_t graph = recording->graph;
    for (cudaStream_t s = emulated_streams; s; s = s->next)
        if (s->recording == recording)
            leave(s);
    free(recording);
    return graph;
}

void emulated_leave(cudaStream_t stream)
{
    if (stream->recording && stream->recording->origin == stream)
        release(end(stream->recording));
    else if (stream->recording)
        leave(stream);
}

bool emulated_record_captured(cudaEvent_t event, cudaStream_t stream, cudaError_t *error)
{
    event->capture = stream->recording ? stream->recording->id : 0;
    if (!stream->recording)
        return false;
    emulated_nodes_copy(&event->tips, &stream->tips);
    *error = stream->recording->spoilt ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    return true;
}

static emulated_recording *find(unsigned long long id)
{
    for (cudaStream_t s = emulated_streams; s; s = s->next)
        if (s->recording && s->recording->id == id)
            return s->recording;
    return NULL;
}

/* The error of a wait for an event that captures forbid, and its effect on the captures of stream
 * and event. */
static cudaError_t refuse_wait(cudaStream_t stream, cudaEvent_t event, const emulated_recording *theirs)
{
    if (event->capture != 0 && !theirs)
        return cudaErrorCapturedEvent;
    if (stream->recording && !theirs)
        return cudaErrorStreamCaptureIsolation;
    if (stream->recording && theirs != stream->recording)
        return cudaErrorStreamCaptureMerge;
    return theirs->spoilt ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

bool emulated_wait_captured(cudaStream_t stream, cudaEvent_t event, cudaError_t *error)
{
    emulated_recording *const theirs = event->capture ? find(event->capture) : NULL;
    if (!stream->recording && event->capture == 0)
        return false;
    *error = refuse_wait(stream, event, theirs);
    if (*error != cudaSuccess) {
        if (stream->recording)
            stream->recording->spoilt = true;
        if (theirs)
            theirs->spoilt = true;
        return true;
    }
    stream->recording = theirs;
    add_nodes(&stream->tips, &event->tips);
    return true;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    EMULATED_TURN();
    cudaError_t error = !stream                               ? cudaErrorStreamCaptureUnsupported
                        : mode > cudaStreamCaptureModeRelaxed ? cudaErrorInvalidValue
                                                              : cudaSuccess;
    pthread_mutex_lock(&emulated_lock);
    if (error == cudaSuccess && stream->recording)
        error = cudaErrorIllegalState;
    if (error == cudaSuccess) {
        emulated_recording *const made = malloc(sizeof *made);
        *made = (emulated_recording){.id = ++captures,
                                     .origin = stream,
                                     .mode = mode,
                                     .thread = pthread_self(),
                                     .graph = calloc(1, sizeof *made->graph)};
        made->graph->references = 1;
        stream->recording = made;
    }
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

/* Marks `tips` and all nodes before them. */
static void mark_followed(const struct CUgraph_st *graph, const emulated_nodes *tips, bool *followed)
{
    for (int i = 0; i < tips->count; i++)
        if (!followed[tips->at[i]]) {
            followed[tips->at[i]] = true;
            mark_followed(graph, &graph->nodes[tips->at[i]].needs, followed);
        }
}

static bool is_joined(const struct CUgraph_st *graph, const emulated_nodes *tips)
{
    bool joined = true, *const followed = calloc((size_t)graph->count + 1, sizeof *followed);
    mark_followed(graph, tips, followed);
    for (int i = 0; i < graph->count; i++)
        joined = joined && followed[i];
    free(followed);
    return joined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out)
{
    EMULATED_TURN();
    cudaError_t error = cudaSuccess;
    pthread_mutex_lock(&emulated_lock);
    emulated_recording *const recording = stream ? stream->recording : NULL;
    if (!recording)
        error = cudaErrorIllegalState;
    else if (recording->origin != stream)
        error = cudaErrorStreamCaptureUnmatched;
    else if (!pthread_equal(recording->thread, pthread_self()))
        error = cudaErrorStreamCaptureWrongThread;
    else {
        error = recording->spoilt                             ? cudaErrorStreamCaptureInvalidated
                : !is_joined(recording->graph, &stream->tips) ? cudaErrorStreamCaptureUnjoined
                                                              : cudaSuccess;
        const cudaGraph_t graph = end(recording);
        *out = error == cudaSuccess ? graph : NULL;
        if (error != cudaSuccess)
            release(graph);
        else
            emulated_count(1);
    }
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

/* True if a stream is captured for which the default stream of the thread's device would wait. */
static bool is_implied(void)
{
    for (cudaStream_t s = emulated_streams; s; s = s->next)
        if (s->blocking && s->recording && s->device == emulated_device)
            return true;
    return false;
}

static cudaError_t tell_capture(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id)
{
    pthread_mutex_lock(&emulated_lock);
    const emulated_recording *const recording = emulated_stream(stream)->recording;
    const bool implied = !stream && is_implied();
    *status = !recording          ? cudaStreamCaptureStatusNone
              : recording->spoilt ? cudaStreamCaptureStatusInvalidated
                                  : cudaStreamCaptureStatusActive;
    if (recording && id)
        *id = recording->id;
    pthread_mutex_unlock(&emulated_lock);
    return implied ? cudaErrorStreamCaptureImplicit : cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    EMULATED_TURN();
    return tell_capture(stream, status, NULL);
}

#if CUDART_VERSION >= 13000
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, const cudaGraphEdgeData **edges,
                                     size_t *count)
{
    EMULATED_TURN();
    if (graph || nodes || edges || count)
        emulated_misuse("cudaStreamGetCaptureInfo: more than is known here");
    return tell_capture(stream, status, id);
}
#else
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
                                     cudaGraph_t *graph, const cudaGraphNode_t **nodes, size_t *count)
{
    EMULATED_TURN();
    if (graph || nodes || count)
        emulated_misuse("cudaStreamGetCaptureInfo: more than is known here");
    return tell_capture(stream, status, id);
}
#endif

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags)
{
    EMULATED_TURN();
    if (flags != 0)
        emulated_misuse("cudaGraphInstantiate: flags that are not known here");
    pthread_mutex_lock(&emulated_lock);
    const cudaError_t error = spoil(is_none, NULL);
    if (error == cudaSuccess) {
        graph->references++;
        *out = malloc(sizeof **out);
        (*out)->graph = graph;
        emulated_count(1);
    }
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

static bool is_due(const struct CUgraph_st *graph, int number, const bool *done)
{
    for (int i = 0; i < graph->nodes[number].needs.count; i++)
        if (!done[graph->nodes[number].needs.at[i]])
            return false;
    return !done[number];
}

/* Runs the nodes of a graph, in a random order that their dependencies allow. */
static void run_graph(const void *argument)
{
    const struct CUgraph_st *const graph = argument;
    bool *const done = calloc((size_t)graph->count + 1, sizeof *done);
    for (int left = graph->count; left > 0; left--) {
        int chosen = -1, due = 0;
        for (int i = 0; i < graph->count; i++)
            if (is_due(graph, i, done) && emulated_draw(++due) == 0)
                chosen = i;
        graph->nodes[chosen].run(graph->nodes[chosen].argument);
        done[chosen] = true;
    }
    free(done);
}

static void drop_graph(void *argument)
{
    release(argument);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    EMULATED_TURN();
    pthread_mutex_lock(&emulated_lock);
    const cudaStream_t in = emulated_stream(stream);
    if (in->recording)
        emulated_misuse("cudaGraphLaunch: in a capture");
    exec->graph->references++;
    const cudaError_t error = emulated_add(in, run_graph, drop_graph, exec->graph);
    pthread_mutex_unlock(&emulated_lock);
    return error;
}

static void drop_handle(cudaGraph_t graph)
{
    pthread_mutex_lock(&emulated_lock);
    release(graph);
    pthread_mutex_unlock(&emulated_lock);
    emulated_count(-1);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    drop_handle(exec->graph);
    free(exec);
    return emulated_turn(__func__);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    drop_handle(graph);
    return emulated_turn(__func__);
}
