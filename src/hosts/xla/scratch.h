/* Memory of a GPU for one execution of a call, from XLA's allocator: the workspace, and dense
 * copies of parts that have gaps, since ranks on GPUs bring contiguous tensors all or none
 * (tsr_plan_execute()). */
#ifndef TSR_HOSTS_XLA_SCRATCH_H
#define TSR_HOSTS_XLA_SCRATCH_H

#include "work.h"

/* Borrows the memory, and fills the copies of operands in the order of the lane's stream. After an
 * error too it is given back by tsr_xla_scratch_return(). */
tsr_status tsr_xla_scratch_take(tsr_xla_work *work, const XLA_FFI_CallFrame *frame);

/* Copies results from their dense copies if `status` is TSR_OK, and gives the memory back, which
 * XLA uses again in stream order. Returns `status`, or what failed. */
tsr_status tsr_xla_scratch_return(tsr_xla_work *work, const XLA_FFI_CallFrame *frame, tsr_status status);

#endif
