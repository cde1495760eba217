/* Graphs: lists of work that can be enqueued many times. */
#include "standin_world.h"

#include <stdlib.h>

struct standin_graph {
    standin_work *first, **last;
};

standin_tally standin_tally_of_thread(void)
{
    return standin_done;
}

/* Work that cannot be recorded is dropped, as in an invalidated capture. */
void standin_record(standin_graph *graph, standin_work *work, const char *where)
{
    if (!work->clone)
        standin_complain("%s is given an event, or memory to free, of outside its graph", where);
    *graph->last = work;
    graph->last = &work->next;
}

void standin_refuse_capture(int device, const char *call)
{
    bool captured = standin.defaults[device].capture;
    for (const struct CUstream_st *stream = standin.streams; stream; stream = stream->next)
        captured = captured || (stream->device == device && stream->capture);
    if (captured)
        standin_complain("%s while a stream of device %d is captured", call, device);
}

void standin_capture_begin(cudaStream_t stream)
{
    standin_graph *graph = calloc(1, sizeof *graph);
    graph->last = &graph->first;
    standin_lock();
    struct CUstream_st *known = stream ? standin_stream(stream, standin_device(), "cudaStreamBeginCapture") : NULL;
    if (!known || known->capture)
        standin_complain("cudaStreamBeginCapture: the default stream, or one that is captured");
    if (known && !known->capture)
        known->capture = graph;
    else
        free(graph);
    standin_unlock();
}

standin_graph *standin_capture_end(cudaStream_t stream)
{
    standin_lock();
    struct CUstream_st *known = standin_stream(stream, standin_device(), "cudaStreamEndCapture");
    standin_graph *graph = known ? known->capture : NULL;
    if (!graph)
        standin_complain("cudaStreamEndCapture: a stream that is not captured");
    else
        known->capture = NULL;
    standin_unlock();
    return graph;
}

void standin_graph_launch(const standin_graph *graph, cudaStream_t stream)
{
    standin_lock();
    struct CUstream_st *known = standin_stream(stream, standin_device(), "cudaGraphLaunch");
    for (const standin_work *work = graph->first; known && work; work = work->next)
        if (work->clone)
            standin_enqueue(known, work->clone(work));
    standin_unlock();
}

void standin_graph_destroy(standin_graph *graph)
{
    standin_lock();
    while (graph && graph->first) {
        standin_work *work = graph->first;
        graph->first = work->next;
        if (work->drop)
            work->drop(work);
        free(work);
    }
    standin_unlock();
    free(graph);
}
