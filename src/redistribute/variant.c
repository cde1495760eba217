#include "redistribute/variant.h"

#include "redistribute/item.h"

/* Up to here every owner of a sum of two terms reduces for itself in direct mode; beyond, halves that are given to the other cost less. */
#define EACH_BYTES ((size_t)32 * 1024)

/* A second step costs more than reading the other term twice while that is small, or comes as a message. */
static bool each_is_faster(const tsr_item *item, const tsr_plan *plan)
{
    return plan->mode == TSR_MODE_MESSAGE || tsr_item_shard_bytes(item) <= EACH_BYTES;
}

/* Results wait in the workspace where peers could still be reading what they would overwrite in place. */
static bool stages(const tsr_item *item, const tsr_plan *plan)
{
    return item->problem.each && item->problem.in_place && plan->mode == TSR_MODE_DIRECT;
}

static bool fits(const tsr_item *item, const tsr_plan *plan)
{
    return plan->options.max_workspace == 0 || tsr_item_shard_bytes(item) <= plan->options.max_workspace / plan->count;
}

void tsr_variant_choose(tsr_item *item, const tsr_plan *plan)
{
    item->problem.each = tsr_problem_each_is_free(&item->problem) && each_is_faster(item, plan);
    if (stages(item, plan) && !fits(item, plan))
        item->problem.each = false;
    item->staged = stages(item, plan);
}
