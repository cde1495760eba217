/** Calls by id in which ranks read one another's memory. */
#ifndef TSR_TENSOR_ROWS_ROWS_DIRECT_H
#define TSR_TENSOR_ROWS_ROWS_DIRECT_H

#include "tensor/rows/row_call.h"

/** Collective over the call's group, whose ranks share all memory: makes the call. `local` is this
 * rank's status so far; after a failure the call's requests are not read. */
tsr_status tsr_rows_run_directly(const tsr_row_call *call, tsr_status local);

/** True if ranks share some memory, so that tsr_rows_gather_from_windows() may serve. The same on
 * all ranks. */
bool tsr_rows_may_use_windows(const tsr_row_call *call);

/** Collective, for a call for which tsr_rows_may_use_windows() is true: a gather as by
 * tsr_rows_run_directly(), if all ranks' shards lie in memory that they share. If some do not,
 * `*done` is false: nothing was written, and all ranks have brought TSR_OK. */
tsr_status tsr_rows_gather_from_windows(const tsr_row_call *call, tsr_status local, bool *done);

#endif
