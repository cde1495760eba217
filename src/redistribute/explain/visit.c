#include "base/memory/memory.h"
#include "base/sort.h"
#include "placement/walk.h"
#include "redistribute/explain/flows.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

#include <string.h>

/* This rank's own shard, in which the boxes of a flow are looked up. */
typedef struct shard {
    const tsr_layout *layout;
    const int64_t *coordinate;
    int place; /* which of a box's three vectors is its position there */
} shard;

static shard shard_of(const tsr_item *item, const tsr_flow *flow, tsr_direction direction)
{
    if (direction == TSR_SENDS && flow->phase == 0)
        return (shard){item->src, item->src_coordinate, 1};
    return (shard){item->dst, item->dst_coordinate, 2};
}

typedef struct visit {
    const tsr_plan *plan;
    tsr_direction direction;
    tsr_flows flows;
    tsr_interval *intervals; /* of one flow: room for box_count in each dim */
    size_t interval_capacity;
    tsr_interval *joined; /* of one flow, where the item is divided: those of each given dim, one dim after the other */
    size_t joined_capacity;
    const tsr_interval *of_dim[TSR_MAX_DIMS]; /* where the intervals of each given dim begin */
    tsr_meter meter;
    tsr_plan_transfer *transfers; /* of one step, peer and item */
    size_t transfer_count, transfer_capacity;
} visit;

static int by_begin(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_interval *x = a, *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Sorts the intervals, drops repeated ones, and returns how many are left. They are maximal: where
 * the common part of two shards continues in the tensor, it continues in both shards, and is one
 * segment. */
static size_t list_once(tsr_interval *at, size_t count)
{
    size_t listed = 0;
    tsr_sort_array(at, count, sizeof *at, by_begin, NULL);
    for (size_t i = 0; i < count; i++)
        if (listed == 0 || at[i].begin != at[listed - 1].begin)
            at[listed++] = at[i];
    return listed;
}

/* Finds the global intervals of the flow's boxes along each dim; the boxes are the product of
 * these. */
static tsr_status find_intervals(visit *v, const tsr_flow *flow, size_t *counts)
{
    const tsr_item *item = &v->plan->items[flow->item];
    const shard s = shard_of(item, flow, v->direction);
    const int ndim = s.layout->ndim;
    void *memory = v->intervals;
    const tsr_status status = tsr_reserve(v->plan->context, &memory, &v->interval_capacity,
                                          flow->box_count * (size_t)ndim, sizeof *v->intervals);
    v->intervals = memory;
    TSR_TRY(status);
    for (int dim = 0; dim < ndim; dim++) {
        tsr_shard_walk walk;
        tsr_shard_walk_begin(&walk, s.layout, dim, s.coordinate);
        tsr_interval *at = v->intervals + (size_t)dim * flow->box_count;
        for (size_t i = 0; i < flow->box_count; i++) {
            const int64_t *box = tsr_item_box(item, flow->first_box + i);
            const int64_t begin = tsr_shard_walk_at(&walk, box[s.place * ndim + dim]).begin;
            at[i] = (tsr_interval){begin, begin + box[dim]};
        }
        counts[dim] = list_once(at, flow->box_count);
        v->of_dim[dim] = at;
    }
    return TSR_OK;
}

/* Counts, and takes from the meter, the intervals that there are at most if each block has
 * `inside_count` intervals. */
static tsr_status count_inside(visit *v, const tsr_interval *blocks, size_t block_count, size_t inside_count,
                               int64_t *count)
{
    int64_t number = 0;
    for (size_t i = 0; i < block_count; i++)
        number += blocks[i].end - blocks[i].begin;
    TSR_TRY(tsr_meter_take_times(&v->meter, number, (int64_t)inside_count));
    *count = number * (int64_t)inside_count;
    return TSR_OK;
}

static size_t append_interval(tsr_interval *at, size_t count, int64_t begin, int64_t end)
{
    if (count > 0 && at[count - 1].end == begin)
        at[--count].end = end;
    else
        at[count] = (tsr_interval){begin, end};
    return count + 1;
}

/* Turns the intervals of a dim of blocks, and of the dim inside blocks, into intervals of the given
 * dim. Whole blocks side by side are one interval. */
static tsr_status join_dim(visit *v, const tsr_interval *const *of, const size_t *counts, int64_t block, size_t *used,
                           size_t *count)
{
    const bool whole = counts[1] == 1 && of[1]->begin == 0 && of[1]->end == block;
    int64_t most = (int64_t)counts[0];
    if (!whole)
        TSR_TRY(count_inside(v, of[0], counts[0], counts[1], &most));
    void *memory = v->joined;
    const tsr_status status =
        tsr_reserve(v->plan->context, &memory, &v->joined_capacity, *used + (size_t)most, sizeof *v->joined);
    v->joined = memory;
    TSR_TRY(status);
    tsr_interval *at = v->joined + *used;
    *count = 0;
    for (size_t i = 0; i < counts[0]; i++) {
        if (whole)
            *count = append_interval(at, *count, of[0][i].begin * block, of[0][i].end * block);
        for (int64_t b = of[0][i].begin; !whole && b < of[0][i].end; b++)
            for (size_t k = 0; k < counts[1]; k++)
                *count = append_interval(at, *count, b * block + of[1][k].begin, b * block + of[1][k].end);
    }
    *used += *count;
    return TSR_OK;
}

/* Turns the intervals of an item's divided dims into those of the given dims. */
static tsr_status join_dims(visit *v, const tsr_division *d, size_t *counts)
{
    const tsr_interval *of[TSR_MAX_DIMS];
    size_t had[TSR_MAX_DIMS], begins[TSR_MAX_DIMS], used = 0;
    memcpy(of, v->of_dim, sizeof of);
    memcpy(had, counts, sizeof had);
    for (int dim = 0; dim < d->src->ndim; dim++) {
        begins[dim] = used;
        if (d->block[dim] > 0)
            TSR_TRY(join_dim(v, of + d->first[dim], had + d->first[dim], d->block[dim], &used, &counts[dim]));
        else
            counts[dim] = had[d->first[dim]];
    }
    for (int dim = 0; dim < d->src->ndim; dim++)
        v->of_dim[dim] = d->block[dim] > 0 ? v->joined + begins[dim] : of[d->first[dim]];
    return TSR_OK;
}

static tsr_status add_transfer(visit *v, const tsr_flow *flow, const size_t *at)
{
    const tsr_layout *layout = v->plan->items[flow->item].given_src;
    void *memory = v->transfers;
    const tsr_status status =
        tsr_reserve(v->plan->context, &memory, &v->transfer_capacity, v->transfer_count + 1, sizeof *v->transfers);
    v->transfers = memory;
    TSR_TRY(status);
    tsr_plan_transfer *transfer = &v->transfers[v->transfer_count++];
    *transfer = (tsr_plan_transfer){.step = flow->step,
                                    .peer = flow->peer,
                                    .item = flow->item,
                                    .ndim = layout->ndim,
                                    .bytes = (int64_t)layout->element_bytes};
    for (int dim = 0; dim < layout->ndim; dim++) {
        const tsr_interval *interval = &v->of_dim[dim][at[dim]];
        transfer->begin[dim] = interval->begin;
        transfer->end[dim] = interval->end;
        transfer->bytes *= interval->end - interval->begin;
    }
    return TSR_OK;
}

static bool advance_intervals(size_t *at, const size_t *counts, int ndim)
{
    for (int dim = ndim - 1; dim >= 0; dim--) {
        if (++at[dim] < counts[dim])
            return true;
        at[dim] = 0;
    }
    return false;
}

static tsr_status add_flow(visit *v, const tsr_flow *flow)
{
    size_t counts[TSR_MAX_DIMS], at[TSR_MAX_DIMS] = {0};
    const tsr_item *item = &v->plan->items[flow->item];
    TSR_TRY(find_intervals(v, flow, counts));
    if (item->division)
        TSR_TRY(join_dims(v, item->division, counts));
    do {
        TSR_TRY(tsr_meter_take(&v->meter, 1));
        TSR_TRY(add_transfer(v, flow, at));
    } while (advance_intervals(at, counts, item->given_src->ndim));
    return TSR_OK;
}

static int by_box(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_plan_transfer *x = a, *y = b;
    for (int dim = 0; dim < x->ndim; dim++) {
        if (x->begin[dim] != y->begin[dim])
            return x->begin[dim] < y->begin[dim] ? -1 : 1;
        if (x->end[dim] != y->end[dim])
            return x->end[dim] < y->end[dim] ? -1 : 1;
    }
    return 0;
}

/* Sorts boxes so that those that continue one another along dim *dim are adjacent. */
static int by_line(const void *a, const void *b, const void *dim)
{
    const tsr_plan_transfer *x = a, *y = b;
    const int along = *(const int *)dim;
    for (int d = 0; d < x->ndim; d++) {
        if (d != along && x->begin[d] != y->begin[d])
            return x->begin[d] < y->begin[d] ? -1 : 1;
        if (d != along && x->end[d] != y->end[d])
            return x->end[d] < y->end[d] ? -1 : 1;
    }
    return x->begin[along] < y->begin[along] ? -1 : x->begin[along] > y->begin[along];
}

static bool goes_on(const tsr_plan_transfer *a, const tsr_plan_transfer *b, int along)
{
    bool same = a->end[along] == b->begin[along];
    for (int d = 0; d < a->ndim; d++)
        same = same && (d == along || (a->begin[d] == b->begin[d] && a->end[d] == b->end[d]));
    return same;
}

/* Joins boxes that continue one another along dim `along`. True if there were any. */
static bool join_along(visit *v, int along)
{
    size_t joined = 0;
    tsr_sort_array(v->transfers, v->transfer_count, sizeof *v->transfers, by_line, &along);
    for (size_t i = 1; i < v->transfer_count; i++) {
        tsr_plan_transfer *last = &v->transfers[joined];
        const tsr_plan_transfer *next = &v->transfers[i];
        if (goes_on(last, next, along)) {
            last->end[along] = next->end[along];
            last->bytes += next->bytes;
        } else {
            v->transfers[++joined] = *next;
        }
    }
    const bool any = joined + 1 < v->transfer_count;
    v->transfer_count = joined + 1;
    return any;
}

/* Joins the boxes of several flows to one peer, such as shares of neighbouring regions. A join
 * along one dim may be what lets boxes join along another. */
static void join_transfers(visit *v)
{
    const int ndim = v->transfers[0].ndim;
    for (int unchanged = 0, along = ndim; unchanged < ndim; unchanged++) {
        along = (along > 0 ? along : ndim) - 1;
        if (join_along(v, along))
            unchanged = 0;
    }
}

static bool go_together(const tsr_flow *a, const tsr_flow *b)
{
    return a->step == b->step && a->peer == b->peer && a->item == b->item;
}

static tsr_status visit_flows(visit *v, tsr_plan_visitor *visitor, void *user)
{
    TSR_TRY(tsr_flows_list(&v->flows, v->plan, v->direction));
    for (size_t i = 0; i < v->flows.count;) {
        const size_t first = i;
        v->transfer_count = 0;
        v->meter.used = 0;
        for (; i < v->flows.count && go_together(&v->flows.at[first], &v->flows.at[i]); i++)
            TSR_TRY(add_flow(v, &v->flows.at[i]));
        if (i - first > 1)
            join_transfers(v);
        tsr_sort_array(v->transfers, v->transfer_count, sizeof *v->transfers, by_box, NULL);
        for (size_t t = 0; t < v->transfer_count; t++)
            TSR_TRY(visitor(&v->transfers[t], user));
    }
    return TSR_OK;
}

static tsr_status visit_all(const char *call, const tsr_plan *plan, tsr_direction direction, tsr_plan_visitor *visitor,
                            void *user)
{
    if (!plan || !visitor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, !plan ? "plan" : "visitor");
    visit v = {.plan = plan,
               .direction = direction,
               .meter = tsr_meter_of(call, plan->items[0].given_src, plan->items[0].given_dst)};
    const tsr_status status = visit_flows(&v, visitor, user);
    tsr_release(plan->context, v.transfers);
    tsr_release(plan->context, v.intervals);
    tsr_release(plan->context, v.joined);
    tsr_flows_free(&v.flows, plan);
    return status;
}

tsr_status tsr_plan_visit_receives(const tsr_plan *plan, tsr_plan_visitor *visitor, void *user)
{
    return visit_all("tsr_plan_visit_receives", plan, TSR_RECEIVES, visitor, user);
}

tsr_status tsr_plan_visit_sends(const tsr_plan *plan, tsr_plan_visitor *visitor, void *user)
{
    return visit_all("tsr_plan_visit_sends", plan, TSR_SENDS, visitor, user);
}
