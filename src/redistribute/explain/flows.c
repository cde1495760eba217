#include "redistribute/explain/flows.h"

#include "base/memory/memory.h"
#include "base/sort.h"
#include "redistribute/explain/steps.h"

#include <tessera/sys/status.h>

/* The list to which flows of one phase and item are added, and what these flows have in common. */
typedef struct listing {
    tsr_flows *flows;
    const tsr_plan *plan;
    const tsr_item *item;
    tsr_flow like;
} listing;

static tsr_status append_flow(const listing *l, int64_t peer, size_t first_box, size_t box_count, int64_t elements)
{
    tsr_flows *flows = l->flows;
    if (peer == l->plan->options.rank)
        return TSR_OK;
    void *memory = flows->at;
    const tsr_status status =
        tsr_reserve(l->plan->context, &memory, &flows->capacity, flows->count + 1, sizeof *flows->at);
    flows->at = memory;
    TSR_TRY(status);
    tsr_flow *flow = &flows->at[flows->count++];
    *flow = l->like;
    flow->peer = peer;
    flow->first_box = first_box;
    flow->box_count = box_count;
    flow->elements = elements;
    return TSR_OK;
}

/* Adds transfers by ascending peer, although a plan's lists begin at its own rank: so the flows of
 * a single move are sorted already. */
static tsr_status add_transfers(const listing *l, const tsr_transfers *transfers)
{
    for (int above = 0; above < 2; above++) {
        for (size_t i = 0; i < transfers->count; i++) {
            const tsr_transfer *t = &transfers->at[i];
            if ((t->peer > l->plan->options.rank) == above)
                TSR_TRY(append_flow(l, t->peer, t->first_box, t->box_count, t->elements));
        }
    }
    return TSR_OK;
}

/* Adds the terms that contributors send of the parts that this rank reduces. */
static tsr_status add_terms(const listing *l)
{
    const tsr_item *item = l->item;
    for (size_t i = 0; i < item->reduction_count; i++) {
        const tsr_reduction *r = &item->reductions[i];
        for (int64_t term = 0; term < item->problem.terms; term++)
            TSR_TRY(append_flow(l, item->contributors[r->first_term + (size_t)term], r->first_box, r->box_count,
                                r->elements));
    }
    return TSR_OK;
}

static tsr_status list_item(listing *l, const tsr_steps *steps, tsr_direction direction)
{
    const tsr_item *item = l->item;
    l->like.phase = 0;
    l->like.step = steps->of_phase[0];
    TSR_TRY(add_transfers(l, direction == TSR_RECEIVES ? &item->moves : &item->sends));
    if (direction == TSR_RECEIVES)
        TSR_TRY(add_terms(l));
    l->like.phase = 1;
    l->like.step = steps->of_phase[1];
    TSR_TRY(add_transfers(l, direction == TSR_RECEIVES ? &item->given : &item->gives));
    l->like.phase = 2;
    l->like.step = steps->of_phase[2];
    return add_transfers(l, direction == TSR_RECEIVES ? &item->relayed : &item->relays);
}

static int by_step_peer_and_item(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_flow *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->peer != y->peer)
        return x->peer < y->peer ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

tsr_status tsr_flows_list(tsr_flows *flows, const tsr_plan *plan, tsr_direction direction)
{
    const tsr_steps steps = tsr_steps_of(plan);
    for (size_t i = 0; i < plan->count; i++) {
        listing l = {.flows = flows, .plan = plan, .item = &plan->items[i], .like = {.item = i}};
        TSR_TRY(list_item(&l, &steps, direction));
    }
    tsr_sort_array(flows->at, flows->count, sizeof *flows->at, by_step_peer_and_item, NULL);
    return TSR_OK;
}

void tsr_flows_free(tsr_flows *flows, const tsr_plan *plan)
{
    tsr_release(plan->context, flows->at);
    *flows = (tsr_flows){0};
}
