/** Lists of rows by the entries that every device has. */
#ifndef TSR_TENSOR_ROWS_BATCH_ROW_PLAIN_H
#define TSR_TENSOR_ROWS_BATCH_ROW_PLAIN_H

#include "tensor/rows/batch/row_batch.h"

/** Takes the memory of tsr_row_plain_run() for rows of at most `length` elements. */
tsr_status tsr_row_plain_reserve(const tsr_row_batch *batch, int64_t length);

/** Enqueues a list, which is not empty, on the device's default stream. */
tsr_status tsr_row_plain_run(const tsr_row_batch *batch);

#endif
