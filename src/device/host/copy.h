/** Copies and fills of boxes. */
#ifndef TSR_DEVICE_HOST_COPY_H
#define TSR_DEVICE_HOST_COPY_H

#include "device/host/choose.h"
#include "device/host/kernels.h"

/** Copies the box, its rows in the ways that `stretch` says; NULL: all by ordinary stores. What streams wants a fence after it, here and
 * below. */
void KERNEL(copy_box)(const tsr_box *box, char *dst, const char *src, tsr_stretch *stretch);

/** `bytes` contiguous ones that the cache holds. `stream`: they bypass it where they are enough of them. */
void KERNEL(copy_run)(char *dst, const char *src, size_t bytes, bool stream);

/** Entries of the table. */
tsr_status KERNEL(host_copy)(void *self, int index, void *dst, const void *src, size_t bytes, tsr_copy_kind kind, tsr_stream stream);
tsr_status KERNEL(host_copy_boxes)(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream);
tsr_status KERNEL(host_fill)(void *self, int index, const tsr_box_fill *fill, tsr_stream stream);

#endif
