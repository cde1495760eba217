#include "graph_calls.h"
#include "standin.h"
#include "standin_ranks.h"

tsr_status graph_begin(tsr_stream stream)
{
    standin_capture_begin(stream);
    return TSR_OK;
}

tsr_status graph_begin_apart(tsr_stream stream)
{
    return graph_begin(stream);
}

tsr_status graph_end(tsr_stream stream, void **graph)
{
    standin_graph *const made = standin_capture_end(stream);
    if (!made)
        return tsr_status_set(TSR_ERROR_DEVICE, "the stream was not captured");
    *graph = made;
    return TSR_OK;
}

tsr_status graph_launch(void *graph, tsr_stream stream)
{
    standin_graph_launch(graph, stream);
    return TSR_OK;
}

void graph_destroy(void *graph)
{
    if (graph)
        standin_graph_destroy(graph);
}

int graph_nccl_ranks(int wanted, const char **reason)
{
    (void)reason;
    return wanted;
}

tsr_status graph_nccl_run(int nranks, tsr_rank_main *body, void *arg)
{
    return standin_run(nranks, body, arg, NULL);
}

tsr_device graph_nccl_device(void)
{
    return standin_ranks_device();
}
