/** Calls by id in which ids and rows travel as messages. */
#ifndef TSR_TENSOR_ROWS_ROWS_MESSAGE_H
#define TSR_TENSOR_ROWS_ROWS_MESSAGE_H

#include "tensor/rows/row_call.h"

/** Collective over the call's group: makes the call. `local` is this rank's status so far; after a
 * failure the call's requests are not read. */
tsr_status tsr_rows_run_by_messages(const tsr_row_call *call, tsr_status local);

#endif
