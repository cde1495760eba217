/** Small moves by the byte runs that their plan has (schedule/small.h). */
#ifndef TSR_REDISTRIBUTE_EXECUTE_SMALL_H
#define TSR_REDISTRIBUTE_EXECUTE_SMALL_H

#include "comm/groups/group.h"
#include "redistribute/schedule/plan.h"

/** Of a plan whose rows are found: true if the tensors lie as it expects, on the host and apart, and nothing else is wrong with what was
 * given. What is wrong the general way finds and says. */
bool tsr_small_takes(const tsr_plan *plan, const tsr_tensor *src, const tsr_tensor *dst, const void *workspace, size_t bytes,
                     tsr_stream stream);

/** tsr_plan_run() of tensors that it takes. */
tsr_status tsr_small_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst);

#endif
