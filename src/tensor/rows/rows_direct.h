/** Calls by id in which ranks read one another's memory. */
#ifndef TSR_TENSOR_ROWS_ROWS_DIRECT_H
#define TSR_TENSOR_ROWS_ROWS_DIRECT_H

#include "tensor/rows/row_call.h"

/** Collective over the call's group, whose ranks share all memory: makes the call. `local` is this
 * rank's status so far; after a failure the call's requests are not read. */
tsr_status tsr_rows_run_directly(const tsr_row_call *call, tsr_status local);

/** True if ranks share some memory, so that tsr_rows_run_in_windows() may serve. The same on all
 * ranks. */
bool tsr_rows_may_use_windows(const tsr_row_call *call);

/** Collective, for a call for which tsr_rows_may_use_windows() is true: tsr_rows_run_directly()
 * where ranks are processes. An update first copies what a rank brings to memory that peers reach;
 * a gather needs all ranks' shards in such memory. If some memory is not, `*done` is false, nothing
 * was written, and all ranks have brought TSR_OK. */
tsr_status tsr_rows_run_in_windows(const tsr_row_call *call, tsr_status local, bool *done);

#endif
