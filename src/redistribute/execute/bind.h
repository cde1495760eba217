/** The tensors that an execution is given, checked and bound to the plan's items. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_BIND_H
#define TSR_REDISTRIBUTE_EXECUTE_BIND_H

#include "redistribute/execute/execution.h"

/** Binds the execution to its tensors, after checks; e->bound and e->spans are set, and have room. */
tsr_status tsr_execution_take(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, size_t bytes);

/** Passes a status on, with its sentence said of one of several tensors. */
tsr_status tsr_name_tensor(size_t i, size_t count, tsr_status status);

#endif
