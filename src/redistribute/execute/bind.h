/** The tensors that an execution is given, checked and bound to the plan's items. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_BIND_H
#define TSR_REDISTRIBUTE_EXECUTE_BIND_H

#include "redistribute/execute/execution.h"

/** Checks the tensors and binds the execution to them. e->bound, and with several items e->spans,
 * point to enough room. `bytes`: of the workspace. */
tsr_status tsr_execution_take(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, size_t bytes);

/** Returns `status`. If there are several tensors, its sentence then begins with "tensor i of
 * count". */
tsr_status tsr_name_tensor(size_t i, size_t count, tsr_status status);

#endif
