/** Copies of rows, in the ways of base/ways.h. */
#ifndef TSR_DEVICE_HOST_ROWS_H
#define TSR_DEVICE_HOST_ROWS_H

#include "base/ways.h"
#include "device/host/kernels.h"

/** `count` rows of `run` bytes each; strides in bytes. */
typedef struct tsr_rows {
    char *dst;
    const char *src;
    int64_t dst_stride, src_stride;
    size_t run;
    int64_t count;
} tsr_rows;

/** Copies rows of at least TSR_SHORTEST_RUN bytes. If the way streams, the caller ends streaming
 * with a stream_fence(). */
void KERNEL(copy_rows)(const tsr_rows *rows, tsr_way way);

#endif
