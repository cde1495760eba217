/**
 * Copies and sums of rows on a device: they are listed on the host, and the device does a whole
 * list at once.
 *
 * The device's `launch` takes a list if it has a kernel for it (sys/device.h); else rows go by
 * `copy_boxes` and `reduce`, which every device has, with the same bits. Work is done in the order
 * of the device's default stream, for which the end of each list waits.
 */
#ifndef TSR_TENSOR_ROWS_BATCH_ROW_BATCH_H
#define TSR_TENSOR_ROWS_BATCH_ROW_BATCH_H

#include "device/device.h"
#include "tensor/rows/row_rooms.h"

#include <tessera/rows.h>

/** What becomes of each row of a list. */
typedef struct tsr_row_work {
    tsr_rows_op op; /**< assign: a row is a copy of its only source */
    bool keeps;     /**< the row's own elements count, as the last term */
    tsr_dtype dtype;
    int64_t length; /**< elements of each row */
} tsr_row_work;

/** A list. */
typedef struct tsr_row_batch {
    tsr_device device;
    tsr_device_ops ops;
    tsr_row_rooms *rooms;
    size_t capacity;
    tsr_row_work work;
    size_t target_count, source_count;
    uintptr_t bits; /**< of all addresses, or'ed */
    /* In TSR_ROOM_LISTS. Addresses are numbers of 64 bits, as the device reads them. */
    int64_t *targets; /**< where each row lies */
    int64_t *starts;  /**< the sources of row t are those from starts[t] to below starts[t + 1] */
    int64_t *sources;
} tsr_row_batch;

/** An empty list without room. `device` is not the host; `rooms` are on it. */
void tsr_row_batch_begin(tsr_row_batch *batch, const tsr_context *context, tsr_device device, tsr_row_rooms *rooms);

/** Takes all memory for lists of at least `count` sources, and of as many as were taken before, of
 * rows of at most `length` elements; the list is empty afterwards. */
tsr_status tsr_row_batch_reserve(tsr_row_batch *batch, int64_t count, int64_t length);

/** Lists a copy of `length` elements; does the list first if it is full or of other work. */
tsr_status tsr_row_batch_copy(tsr_row_batch *batch, tsr_dtype dtype, int64_t length, char *to, const char *from);

/** Says what a list is of, which is empty. */
void tsr_row_batch_set(tsr_row_batch *batch, const tsr_row_work *work);

/** Lists a row, and then its sources, one or more, in the order in which they act. There is room
 * for all. */
void tsr_row_batch_add_target(tsr_row_batch *batch, char *to);
void tsr_row_batch_add_source(tsr_row_batch *batch, const char *from);

/** Does what is listed, and waits for the device. The list is empty afterwards. */
tsr_status tsr_row_batch_finish(tsr_row_batch *batch);

#endif
