/** Ids in local tensors of i32 or i64. */
#ifndef TSR_TENSOR_ROWS_ROW_IDS_H
#define TSR_TENSOR_ROWS_ROW_IDS_H

#include "tensor/rows/row_rooms.h"

#include <tessera/tensor.h>

/** The most ids that tsr_row_ids_read() is asked for at a time: a block on the stack. */
#define TSR_ROW_BLOCK 64

/** TSR_ERROR_ARGUMENT: `ids` is NULL, not of one dim of i32 or i64, or has no data. Devices are not
 * looked at. `call` and `name`, "ids", begin the sentence. */
tsr_status tsr_row_ids_check(const char *call, const char *name, const tsr_tensor *ids);

/** Checked ids that are on the device of `rooms`, in host memory: `*out` is without gaps, in
 * TSR_ROOM_IDS. Waits for the device's default stream. */
tsr_status tsr_row_ids_bring(const tsr_tensor *ids, tsr_row_rooms *rooms, tsr_tensor *out);

/** The first position whose id is not from 0 to `end` - 1; -1 if there is none. `*id` becomes the
 * id. */
int64_t tsr_row_ids_find_outside(const tsr_tensor *ids, int64_t end, int64_t *id);

/** Reads ids [first, first + count). */
void tsr_row_ids_read(const tsr_tensor *ids, int64_t first, int64_t count, int64_t *out);

#endif
