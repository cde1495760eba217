#include "graph_calls.h"

#include <cuda_runtime_api.h>

static tsr_status check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return TSR_OK;
    (void)cudaGetLastError();
    return tsr_status_set(TSR_ERROR_DEVICE, "%s: %s", call, cudaGetErrorName(error));
}

/* In global mode a call that captures forbid, made by any thread, invalidates the capture. */
tsr_status graph_begin(tsr_stream stream)
{
    return check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
}

tsr_status graph_begin_apart(tsr_stream stream)
{
    return check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
}

tsr_status graph_end(tsr_stream stream, void **graph)
{
    cudaGraph_t recorded;
    cudaGraphExec_t made;
    TSR_TRY(check(cudaStreamEndCapture(stream, &recorded), "cudaStreamEndCapture"));
    const tsr_status status = check(cudaGraphInstantiate(&made, recorded, 0), "cudaGraphInstantiate");
    (void)cudaGraphDestroy(recorded);
    if (status == TSR_OK)
        *graph = made;
    return status;
}

tsr_status graph_launch(void *graph, tsr_stream stream)
{
    return check(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
}

void graph_destroy(void *graph)
{
    if (graph)
        (void)cudaGraphExecDestroy(graph);
}
