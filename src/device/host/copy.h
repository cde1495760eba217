/** Copies and fills of boxes. */
#ifndef TSR_DEVICE_HOST_COPY_H
#define TSR_DEVICE_HOST_COPY_H

#include "device/host/kernels.h"

/** Copies the box; `stream` bypasses the cache where runs are long enough, and then wants a fence after it. */
void KERNEL(copy_box)(const tsr_box *box, char *dst, const char *src, bool stream);

/** `bytes` contiguous ones that the cache holds, likewise. */
void KERNEL(copy_run)(char *dst, const char *src, size_t bytes, bool stream);

/** Entries of the table. */
tsr_status KERNEL(host_copy)(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind, tsr_stream stream);
tsr_status KERNEL(host_copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status KERNEL(host_fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);

#endif
