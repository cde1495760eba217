/** Copies and fills of boxes. */
#ifndef TSR_DEVICE_HOST_COPY_H
#define TSR_DEVICE_HOST_COPY_H

#include "device/host/choose.h"
#include "device/host/kernels.h"

/** Copies the box, its rows in the ways that `stretch` chooses; NULL: by ordinary stores. The
 * caller ends streaming with a stream_fence(). */
void KERNEL(copy_box)(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch);

/** Copies `bytes` contiguous bytes; the cache holds the source. `stream`: at least TSR_SHORTEST_RUN
 * bytes are streamed, and the caller ends streaming with a stream_fence(). */
void KERNEL(copy_run)(char *dst, const char *src, size_t bytes, bool stream);

/** Entries of the operation table. */
tsr_status KERNEL(host_copy)(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind,
                             tsr_stream stream);
tsr_status KERNEL(host_copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status KERNEL(host_fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);

#endif
