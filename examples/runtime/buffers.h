/** The memory of one move on one rank, on the host or on a device, and what must be in it. */
#ifndef EXAMPLES_RUNTIME_BUFFERS_H
#define EXAMPLES_RUNTIME_BUFFERS_H

#include <tessera/plan.h>
#include <tessera/sys/device.h>

typedef struct buffers {
    tsr_tensor src, dst;
    void *workspace;
    size_t src_bytes, dst_bytes, workspace_bytes;
} buffers;

/** Memory for the plan of `rank`. The source is filled: element i of the tensor has the value i,
 * and terms of a sum are multiples of it. `device` NULL: the host. */
tsr_status buffers_open(tsr_context *context, const tsr_device_driver *device, const tsr_plan *plan, int rank,
                        tsr_stream stream, buffers *out);
void buffers_close(tsr_context *context, buffers *b);

/** Compares every element of the destination. TSR_ERROR_INTERNAL: one is wrong. */
tsr_status buffers_check(const buffers *b, const tsr_plan *plan, const char *name, int rank, tsr_stream stream);

/** A stream of the device of `rank`; NULL on the host. */
tsr_status buffers_stream(const tsr_device_driver *device, int rank, tsr_stream *out);
void buffers_end_stream(const tsr_device_driver *device, int rank, tsr_stream stream);

/** Waits for the stream; returns at once on the host. */
tsr_status buffers_settle(const tsr_device_driver *device, int rank, tsr_stream stream);

#endif
