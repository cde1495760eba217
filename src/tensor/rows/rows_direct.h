/** Calls by id in which ranks read one another's memory. */
#ifndef TSR_TENSOR_ROWS_ROWS_DIRECT_H
#define TSR_TENSOR_ROWS_ROWS_DIRECT_H

#include "tensor/rows/row_call.h"

/** Collective over the call's group: makes the call. `local` is this rank's status so far; after a
 * failure the call's requests are not read. */
tsr_status tsr_rows_run_directly(const tsr_row_call *call, tsr_status local);

#endif
