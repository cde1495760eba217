/** Where message mode packs and receives: offsets into the workspace, and the host scratch of one execution. */
#ifndef TSR_REDISTRIBUTE_STAGING_H
#define TSR_REDISTRIBUTE_STAGING_H

#include "redistribute/plan.h"

/** Sets plan->workspace_bytes and plan->scratch_bytes. */
void tsr_staging_measure(tsr_plan *plan);

/** Bytes that a message of so many elements takes in the workspace: whole cache lines. */
static inline size_t tsr_staging_bytes(const tsr_plan *plan, int64_t elements)
{
    return ((size_t)elements * plan->src->element_bytes + 63) & ~(size_t)63;
}

/** True if results wait in the workspace: peers could still be reading what they would overwrite in place. */
static inline bool tsr_plan_stages_results(const tsr_plan *plan)
{
    return plan->problem.each && plan->problem.in_place && plan->mode == TSR_MODE_DIRECT;
}

/** True if a result is given to more than the rank that reduces it: then a second exchange follows. The same on every rank. */
static inline bool tsr_plan_has_results(const tsr_plan *plan)
{
    return plan->problem.reduces && !plan->problem.each && tsr_side_count(&plan->problem.dst, TSR_ROLE_FREE) > 1;
}

#endif
