/** Where the rows of a dispatch lie: computed by each rank alone, from the numbers of slots that
 * all ranks have for each expert. */
#ifndef TSR_TENSOR_EXPERTS_EXPERT_ROUTES_H
#define TSR_TENSOR_EXPERTS_EXPERT_ROUTES_H

#include "tensor/experts/expert_plan.h"

/** Counts this rank's slots by number of expert in plan->counts. `ids` are checked. */
void tsr_expert_count(tsr_experts_plan *plan, const tsr_tensor *ids);

/**
 * Sets the last dispatch of the plan: from plan->all_counts and plan->rooms of all positions.
 * Returns the same on all ranks. TSR_ERROR_MEMORY, if the plan drops nothing: a rank lacks room, or
 * an expert gets more than its capacity; then only `needed` is set.
 */
tsr_status tsr_expert_route(tsr_experts_plan *plan, const char *call, const tsr_tensor *ids);

#endif
