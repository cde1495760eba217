#include "redistribute/explain/figures.h"

#include "mesh/mesh.h"
#include "redistribute/explain/bound.h"
#include "redistribute/explain/flows.h"
#include "redistribute/explain/steps.h"
#include "redistribute/match/cost.h"
#include "redistribute/schedule/work.h"

#include <tessera/sys/status.h>

const tsr_node_map *tsr_told_nodes(const tsr_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].nodes)
            return plan->nodes;
    return NULL;
}

double tsr_told_ratio(int64_t received, int64_t bound)
{
    if (bound > 0)
        return (double)received / (double)bound;
    return bound == 0 && received == 0 ? 1 : -1;
}

/* The dims of the source's mesh in which this rank and a peer differ, as bits; 0 between two
 * meshes. */
static unsigned differing_dims(const tsr_item *item, int64_t peer)
{
    int64_t other[TSR_MAX_DIMS];
    unsigned dims = 0;
    if (!item->problem.same_mesh || !tsr_mesh_locate(item->src->mesh, peer, other))
        return 0;
    for (int i = 0; i < item->src->mesh_ndim; i++)
        dims |= other[i] != item->src_coordinate[i] ? 1U << i : 0;
    return dims;
}

static int64_t bytes_of(const tsr_plan *plan, const tsr_flow *flow)
{
    return flow->elements * (int64_t)plan->items[flow->item].src->element_bytes;
}

static tsr_status measure_receives(const tsr_plan *plan, tsr_measure *out)
{
    tsr_flows flows = {0};
    const tsr_node_map *nodes = tsr_told_nodes(plan);
    const tsr_status status = tsr_flows_list(&flows, plan, TSR_RECEIVES);
    for (size_t i = 0; i < flows.count && status == TSR_OK; i++) {
        const tsr_flow *flow = &flows.at[i];
        tsr_plan_step *step = &out->steps[flow->step];
        const bool near =
            !nodes || tsr_node_map_find(nodes, flow->peer) == tsr_node_map_find(nodes, plan->options.rank);
        out->received[flow->phase] += bytes_of(plan, flow);
        out->crossing[flow->phase] += near ? 0 : bytes_of(plan, flow);
        step->bytes_received += bytes_of(plan, flow);
        step->messages_received += i == 0 || flow->step != flow[-1].step || flow->peer != flow[-1].peer;
        step->mesh_dims |= differing_dims(&plan->items[flow->item], flow->peer);
    }
    tsr_flows_free(&flows, plan);
    return status;
}

static tsr_status measure_sends(const tsr_plan *plan, tsr_measure *out)
{
    tsr_flows flows = {0};
    const tsr_status status = tsr_flows_list(&flows, plan, TSR_SENDS);
    for (size_t i = 0; i < flows.count && status == TSR_OK; i++) {
        const tsr_flow *flow = &flows.at[i];
        tsr_plan_step *step = &out->steps[flow->step];
        step->bytes_sent += bytes_of(plan, flow);
        step->messages_sent += i == 0 || flow->step != flow[-1].step || flow->peer != flow[-1].peer;
        step->mesh_dims |= differing_dims(&plan->items[flow->item], flow->peer);
    }
    tsr_flows_free(&flows, plan);
    return status;
}

/* Elements of this rank's own source that its destination takes as they are, or as terms. */
static int64_t count_kept(const tsr_item *item)
{
    int64_t elements = 0;
    for (size_t i = 0; i < item->moves.count; i++)
        elements += item->moves.at[i].peer == item->rank ? item->moves.at[i].elements : 0;
    for (size_t i = 0; i < item->reduction_count; i++)
        for (size_t term = 0; term < (size_t)item->problem.terms; term++)
            elements += item->contributors[item->reductions[i].first_term + term] == item->rank
                            ? item->reductions[i].elements
                            : 0;
    return elements;
}

/* Adds the figures that each item has by itself: bytes kept, gather_and_slice and the lower
 * bound. */
static tsr_status measure_items(const tsr_plan *plan, tsr_plan_figures *f)
{
    tsr_meter meter = tsr_meter_of("tsr_plan_figures_of", plan->items[0].given_src, plan->items[0].given_dst);
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_item *item = &plan->items[i];
        f->bytes_kept += count_kept(item) * (int64_t)item->src->element_bytes;
        f->gather_and_slice = tsr_add_saturated(f->gather_and_slice, tsr_gather_and_slice(item));
        if (!tsr_bound_is_exact(item))
            f->lower_bound = -1;
        if (f->lower_bound >= 0)
            TSR_TRY(tsr_bound_of_rank(item, &meter, &f->lower_bound));
    }
    return TSR_OK;
}

static void sum_up(const tsr_plan *plan, tsr_measure *out)
{
    tsr_plan_figures *f = &out->figures;
    for (size_t i = 0; i < TSR_PLAN_STEPS_MAX; i++) {
        f->bytes_received += out->steps[i].bytes_received;
        f->bytes_sent += out->steps[i].bytes_sent;
        f->messages_received += out->steps[i].messages_received;
        f->messages_sent += out->steps[i].messages_sent;
    }
    f->ratio = tsr_told_ratio(f->bytes_received, f->lower_bound);
    f->workspace_bytes = plan->workspace_bytes;
    tsr_load inside = {0}, between = {0};
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        tsr_load_add(&inside, (double)out->received[phase]);
        tsr_load_add(&between, (double)out->crossing[phase]);
    }
    out->work = plan->measured ? tsr_work_seconds(plan) : 0;
    f->seconds = plan->inside ? tsr_work_plan_seconds(plan, out->work, inside, between) : 0;
}

tsr_status tsr_measure_plan(const tsr_plan *plan, tsr_measure *out)
{
    const tsr_steps steps = tsr_steps_of(plan);
    *out = (tsr_measure){0};
    for (size_t i = 0; i < steps.count; i++)
        out->steps[i].op = steps.ops[i];
    TSR_TRY(measure_receives(plan, out));
    TSR_TRY(measure_sends(plan, out));
    TSR_TRY(measure_items(plan, &out->figures));
    sum_up(plan, out);
    return TSR_OK;
}

tsr_status tsr_plan_step_at(const tsr_plan *plan, size_t index, tsr_plan_step *out)
{
    if (!plan || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_step_at: %s is NULL", !plan ? "plan" : "out");
    const size_t count = tsr_plan_step_count(plan);
    if (index >= count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_step_at: index is %zu, but the plan has %zu step%s", index,
                              count, count == 1 ? "" : "s");
    tsr_measure measure;
    TSR_TRY(tsr_measure_plan(plan, &measure));
    *out = measure.steps[index];
    return TSR_OK;
}

tsr_status tsr_plan_figures_of(const tsr_plan *plan, tsr_plan_figures *out)
{
    if (!plan || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_figures_of: %s is NULL", !plan ? "plan" : "out");
    tsr_measure measure;
    TSR_TRY(tsr_measure_plan(plan, &measure));
    *out = measure.figures;
    return TSR_OK;
}
