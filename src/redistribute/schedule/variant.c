#include "redistribute/schedule/variant.h"

#include "base/checked.h"
#include "redistribute/match/cost.h"
#include "redistribute/schedule/nodes.h"
#include "redistribute/schedule/sizes.h"
#include "redistribute/schedule/work.h"

/* Up to here every owner of a sum of two terms reduces for itself in direct mode; beyond, halves that are given to the other cost less. */
#define EACH_BYTES ((size_t)32 * 1024)

/* By the model: each rank receives so many bytes in so many steps; where nodes matter, from other nodes. */
static double seconds(const tsr_item *item, const tsr_plan *plan, int steps, double bytes)
{
    const tsr_load inside = {steps, bytes};
    const tsr_load between = item->nodes ? (tsr_load){steps, (double)tsr_node_map_most(item->nodes) * bytes} : (tsr_load){0};
    return tsr_cost_seconds(&plan->profile, inside, between);
}

/* One step in which every owner reads all other terms, against two in which it reads its share of them, and is given the other shares. */
static bool each_takes_less_time(const tsr_item *item, const tsr_plan *plan)
{
    if (plan->measured)
        return tsr_work_reduction_seconds(item, plan, true) < tsr_work_reduction_seconds(item, plan, false);
    const double shard = (double)tsr_item_shard_bytes(item), terms = (double)item->problem.terms;
    const double owners = (double)tsr_side_count(&item->problem.dst, TSR_ROLE_FREE);
    return seconds(item, plan, 1, (terms - 1) * shard) < seconds(item, plan, 2, (terms - 1 + owners - 1) * shard / owners);
}

/* With two terms a second step costs more than reading the other one twice while that is small, or comes as a message. */
static bool each_is_faster(const tsr_item *item, const tsr_plan *plan)
{
    if (!tsr_problem_each_is_possible(&item->problem))
        return false;
    if (item->problem.terms == 2 && (plan->options.mode == TSR_MODE_MESSAGE || tsr_item_shard_bytes(item) <= EACH_BYTES))
        return true;
    return plan->options.objective == TSR_OBJECTIVE_TIME && each_takes_less_time(item, plan);
}

/* Results wait in the workspace where peers could still be reading what they would overwrite in place. */
static bool stages(const tsr_item *item, const tsr_plan *plan)
{
    return item->problem.each && item->problem.in_place && plan->options.mode == TSR_MODE_DIRECT;
}

/* Every item's results begin on a line of their own. */
static bool fits(const tsr_item *item, const tsr_plan *plan)
{
    const size_t lines = tsr_round_down(plan->options.max_workspace / plan->count, TSR_LINE);
    return plan->options.max_workspace == 0 || tsr_item_shard_bytes(item) <= lines;
}

/*
 * Everybody fetches a copy from another node, against one copy a node that is then handed round in a second step. Into a rank come as many
 * bytes either way; into a node at most a shard for each of its ranks but one less. So everybody fetches where that costs the largest node
 * no more than the second step's latency, which two moves by way of another layout would cost too (cost.h).
 */
static bool sharing_is_faster(const tsr_item *item, const tsr_plan *plan)
{
    const double saved = (double)(tsr_node_map_most(item->nodes) - 1) * (double)tsr_item_shard_bytes(item);
    return !item->problem.each && !item->problem.local && saved / plan->profile.between.bandwidth > tsr_work_middle_seconds(item, plan) &&
           tsr_nodes_have_mates(item);
}

void tsr_variant_choose(tsr_item *item, const tsr_plan *plan)
{
    item->nodes = tsr_nodes_matter(item, plan->nodes) ? plan->nodes : NULL;
    item->problem.each = each_is_faster(item, plan);
    if (stages(item, plan) && !fits(item, plan))
        item->problem.each = false;
    item->shares = item->nodes && sharing_is_faster(item, plan);
    item->staged = stages(item, plan);
}
