/** Small moves, by the rows of bytes that planning has found (schedule/small.h). */
#ifndef TSR_REDISTRIBUTE_EXECUTE_SMALL_H
#define TSR_REDISTRIBUTE_EXECUTE_SMALL_H

#include "comm/groups/group.h"
#include "redistribute/schedule/plan.h"

/** For a plan whose rows are found: true if the tensors lie as it expects, on the host and apart,
 * and the workspace is large enough. If not, the general way takes the tensors, or says what is
 * wrong with them. */
bool tsr_small_takes(const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst, const void *workspace,
                     size_t bytes, tsr_stream stream);

/** tsr_plan_run() for tensors that tsr_small_takes() has accepted. */
tsr_status tsr_small_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst);

#endif
