/** Streams, events and captures: entries of the operation table; `self` is a tsr_cuda. */
#ifndef TSR_DEVICE_CUDA_STREAMS_H
#define TSR_DEVICE_CUDA_STREAMS_H

#include <tessera/sys/device.h>

tsr_status tsr_cuda_stream_create(void *self, int index, tsr_stream *out);
void tsr_cuda_stream_destroy(void *self, int index, tsr_stream stream);
tsr_status tsr_cuda_stream_synchronize(void *self, int index, tsr_stream stream);
tsr_status tsr_cuda_event_create(void *self, int index, void **out);
void tsr_cuda_event_destroy(void *self, int index, void *event);
tsr_status tsr_cuda_event_record(void *self, int index, void *event, tsr_stream stream);
tsr_status tsr_cuda_event_wait(void *self, int index, void *event, tsr_stream stream);
tsr_status tsr_cuda_capture(void *self, int index, tsr_stream stream, uint64_t *id);

#endif
