#include "redistribute/schedule/variant.h"

#include "base/checked.h"
#include "redistribute/match/cost.h"
#include "redistribute/schedule/nodes.h"
#include "redistribute/schedule/sizes.h"
#include "redistribute/schedule/work.h"

/* In direct mode, up to shards of this many bytes, every owner of a reduction of two terms reduces
 * by itself; beyond, reducing a half each and giving it to the other owner costs less. */
#define EACH_BYTES ((size_t)32 * 1024)

/* Seconds by the model of cost.h if each rank receives `bytes` in `steps` steps; where nodes
 * matter, from other nodes. */
static double seconds(const tsr_item *item, const tsr_plan *plan, int steps, double bytes)
{
    const tsr_load inside = {steps, bytes};
    const tsr_load between =
        item->nodes ? (tsr_load){steps, (double)tsr_node_map_most(item->nodes) * bytes} : (tsr_load){0};
    return tsr_cost_seconds(&plan->profile, inside, between);
}

/* True if one step, in which every owner reads all other terms, takes less time than two, in which
 * it reads its share of these terms and is given the results of the other shares. */
static bool each_takes_less_time(const tsr_item *item, const tsr_plan *plan)
{
    if (plan->measured)
        return tsr_work_reduction_seconds(item, plan, true) < tsr_work_reduction_seconds(item, plan, false);
    const double shard = (double)tsr_item_shard_bytes(item), terms = (double)item->problem.terms;
    const double owners = (double)tsr_side_count(&item->problem.dst, TSR_ROLE_FREE);
    return seconds(item, plan, 1, (terms - 1) * shard) <
           seconds(item, plan, 2, (terms - 1 + owners - 1) * shard / owners);
}

/* With two terms, a second step costs more than reading all of the other term instead of half of
 * it, if that is small or comes as a message. */
static bool each_is_faster(const tsr_item *item, const tsr_plan *plan)
{
    if (!tsr_problem_each_is_possible(&item->problem))
        return false;
    if (item->problem.terms == 2 &&
        (plan->options.mode == TSR_MODE_MESSAGE || tsr_item_shard_bytes(item) <= EACH_BYTES))
        return true;
    return plan->options.objective == TSR_OBJECTIVE_TIME && each_takes_less_time(item, plan);
}

/* True if results wait in the workspace: in place they would overwrite what peers may still be
 * reading. */
static bool stages(const tsr_item *item, const tsr_plan *plan)
{
    return item->problem.each && item->problem.in_place && plan->options.mode == TSR_MODE_DIRECT;
}

/* True if the results fit in the item's part of options.max_workspace, in whole cache lines. */
static bool results_fit(const tsr_item *item, const tsr_plan *plan)
{
    const size_t lines = tsr_round_down(plan->options.max_workspace / plan->count, TSR_LINE);
    return plan->options.max_workspace == 0 || tsr_item_shard_bytes(item) <= lines;
}

/*
 * Compares every rank fetching a copy from another node with one copy a node, which is then handed
 * round in a second step. A rank receives equally many bytes either way; sharing spares a node at
 * most one shard for each of its ranks but one. So nodes share where receiving these would take the
 * largest node longer than the second step's latency, which two moves by way of another layout
 * would cost too (cost.h).
 */
static bool sharing_is_faster(const tsr_item *item, const tsr_plan *plan)
{
    const double saved = (double)(tsr_node_map_most(item->nodes) - 1) * (double)tsr_item_shard_bytes(item);
    return !item->problem.each && !item->problem.local &&
           saved / plan->profile.between.bandwidth > tsr_work_middle_seconds(item, plan) && tsr_nodes_have_mates(item);
}

void tsr_variant_choose(tsr_item *item, const tsr_plan *plan)
{
    item->nodes = tsr_nodes_matter(item, plan->nodes) ? plan->nodes : NULL;
    item->problem.each = each_is_faster(item, plan);
    if (stages(item, plan) && !results_fit(item, plan))
        item->problem.each = false;
    item->shares = item->nodes && sharing_is_faster(item, plan);
    item->staged = stages(item, plan);
}
