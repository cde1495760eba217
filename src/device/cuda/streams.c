#include "device/cuda/streams.h"

#include "device/cuda/gpu.h"

/* Streams are non-blocking: work on the NULL stream, anywhere in the process, neither waits for
 * them nor delays them. Events carry order, not time, which makes them cheaper. */

tsr_status tsr_cuda_stream_create(void *self, int index, tsr_stream *out)
{
    cudaStream_t stream = NULL;
    int previous;
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = tsr_cuda_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                              "cudaStreamCreateWithFlags", "making a stream");
    tsr_cuda_leave(previous);
    if (status == TSR_OK)
        *out = stream;
    return status;
}

void tsr_cuda_stream_destroy(void *self, int index, tsr_stream stream)
{
    int previous;
    if (!stream || tsr_cuda_enter(self, index, &previous) != TSR_OK)
        return;
    (void)cudaStreamDestroy(stream);
    tsr_cuda_leave(previous);
}

/* Errors of data that the awaited kernels have found are reported by the wait. */
tsr_status tsr_cuda_stream_synchronize(void *self, int index, tsr_stream stream)
{
    tsr_cuda *const cuda = self;
    int previous;
    TSR_TRY(tsr_cuda_enter(cuda, index, &previous));
    tsr_status status = tsr_cuda_status(cudaStreamSynchronize(stream), "cudaStreamSynchronize", "waiting for a stream");
    if (status == TSR_OK)
        status = tsr_cuda_faults_report(&cuda->gpu[index].faults, &cuda->mutex, stream);
    tsr_cuda_leave(previous);
    return status;
}

tsr_status tsr_cuda_event_create(void *self, int index, void **out)
{
    cudaEvent_t event = NULL;
    int previous;
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = tsr_cuda_status(cudaEventCreateWithFlags(&event, cudaEventDisableTiming),
                                              "cudaEventCreateWithFlags", "making an event");
    tsr_cuda_leave(previous);
    if (status == TSR_OK)
        *out = event;
    return status;
}

void tsr_cuda_event_destroy(void *self, int index, void *event)
{
    int previous;
    if (!event || tsr_cuda_enter(self, index, &previous) != TSR_OK)
        return;
    (void)cudaEventDestroy(event);
    tsr_cuda_leave(previous);
}

tsr_status tsr_cuda_event_record(void *self, int index, void *event, tsr_stream stream)
{
    int previous;
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = tsr_cuda_status(cudaEventRecord(event, stream), "cudaEventRecord", "recording an event");
    tsr_cuda_leave(previous);
    return status;
}

tsr_status tsr_cuda_event_wait(void *self, int index, void *event, tsr_stream stream)
{
    int previous;
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
    const tsr_status status = tsr_cuda_status(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent",
                                              "making a stream wait for an event");
    tsr_cuda_leave(previous);
    return status;
}

/* The id is CUDA's, which all streams of a capture share and which is never 0. An invalidated
 * capture is no error here: the call that ends the capture reports it. */
tsr_status tsr_cuda_capture(void *self, int index, tsr_stream stream, uint64_t *id)
{
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    unsigned long long number = 0;
    int previous;
    TSR_TRY(tsr_cuda_enter(self, index, &previous));
#if CUDART_VERSION >= 13000
    const cudaError_t error = cudaStreamGetCaptureInfo(stream, &capture, &number, NULL, NULL, NULL, NULL);
#else
    const cudaError_t error = cudaStreamGetCaptureInfo(stream, &capture, &number, NULL, NULL, NULL);
#endif
    const tsr_status status = tsr_cuda_status(error, "cudaStreamGetCaptureInfo", "asking whether a stream is captured");
    tsr_cuda_leave(previous);
    if (status == TSR_OK)
        *id = capture == cudaStreamCaptureStatusNone ? 0 : number;
    return status;
}
