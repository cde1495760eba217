#include "redistribute/execute/direct.h"

#include "redistribute/execute/boxes.h"
#include "redistribute/execute/shelf.h"
#include "redistribute/schedule/plan_text.h"

#include <tessera/sys/status.h>

static const tsr_view *view_of(const tsr_execution *e, const tsr_bound *b, int position)
{
    return (const tsr_view *)tsr_call_of(e->group->comm, position)->extra + (b - e->bound);
}

static tsr_place source_of(const tsr_execution *e, const tsr_bound *b, int64_t rank)
{
    if (rank == e->plan->options.rank)
        return b->src;
    const int position = tsr_group_position(e->group, rank);
    if (e->eager)
        return (tsr_place){(char *)(uintptr_t)tsr_call_buffer_of(e->group->comm, position), b->item->shown_strides};
    const tsr_view *view = view_of(e, b, position);
    return (tsr_place){(char *)(uintptr_t)view->src, view->src_strides};
}

static tsr_place destination_of(const tsr_execution *e, const tsr_bound *b, int64_t rank)
{
    if (rank == e->plan->options.rank)
        return b->result;
    const tsr_view *view = view_of(e, b, tsr_group_position(e->group, rank));
    return (tsr_place){view->dst, view->dst_strides};
}

static tsr_status pull_moves(const tsr_execution *e, const tsr_bound *b, tsr_copies *copies)
{
    const tsr_transfers *moves = &b->item->moves;
    const size_t first = e->device.driver ? 0 : b->item->first_on_host;
    for (size_t i = 0; i < moves->count; i++) {
        const tsr_transfer *move = &moves->at[i < moves->count - first ? first + i : first + i - moves->count];
        const tsr_place src = source_of(e, b, move->peer);
        const bool in_place = move->peer == e->plan->options.rank && src.base == b->dst.base;
        if (!in_place)
            TSR_TRY(tsr_copies_add(copies, b->item, move, b->dst, src, true));
    }
    return TSR_OK;
}

/* Copies what mates have taken for this rank by now. */
static tsr_status collect_relayed(const tsr_execution *e)
{
    tsr_copies copies;
    tsr_copies_begin(&copies, e);
    for (size_t i = 0; i < e->plan->count; i++) {
        const tsr_bound *b = &e->bound[i];
        const tsr_transfers *relayed = &b->item->relayed;
        for (size_t k = 0; k < relayed->count; k++)
            TSR_TRY(tsr_copies_add(&copies, b->item, &relayed->at[k], b->dst, destination_of(e, b, relayed->at[k].peer),
                                   false));
    }
    return tsr_copies_end(&copies);
}

static void point_at_box(const tsr_execution *e, const tsr_bound *b, const tsr_reduction *r,
                         const tsr_reduce_arrays *arrays, size_t box)
{
    const tsr_item *item = b->item;
    const int64_t *contributors = item->contributors + r->first_term;
    for (int64_t term = 0; term < item->problem.terms; term++) {
        const tsr_place place = source_of(e, b, contributors[term]);
        arrays->src[term] = place.base + tsr_item_offset(item, box, place.strides, true);
        for (int dim = 0; dim < item->src->ndim; dim++)
            arrays->src_strides[term][dim] = place.strides[dim];
    }
    for (size_t i = 0; i < item->owner_count; i++) {
        const tsr_place place = destination_of(e, b, item->owners[i]);
        arrays->dst[i] = place.base + tsr_item_offset(item, box, place.strides, false);
        for (int dim = 0; dim < item->src->ndim; dim++)
            arrays->dst_strides[i][dim] = place.strides[dim];
    }
}

/* No other rank reads or writes what this rank is the home of. So results go straight to all
 * owners, also where an owner's source and destination are one memory. */
static tsr_status reduce_to_owners(const tsr_execution *e, const tsr_bound *b)
{
    const tsr_item *item = b->item;
    const tsr_scratch scratch = tsr_scratch_divide(e->plan, tsr_holding_of(e->group)->scratch);
    tsr_box_reduce reduce = tsr_execution_reduce(item, &scratch.reduce, (int)item->owner_count);
    for (size_t i = 0; i < item->reduction_count; i++) {
        const tsr_reduction *r = &item->reductions[i];
        for (size_t box = r->first_box; box < r->first_box + r->box_count; box++) {
            point_at_box(e, b, r, &scratch.reduce, box);
            for (int dim = 0; dim < reduce.ndim; dim++)
                reduce.shape[dim] = tsr_item_box(item, box)[dim];
            TSR_TRY(e->ops.table->reduce(e->ops.self, e->ops.index, &reduce, e->stream));
        }
    }
    return TSR_OK;
}

tsr_status tsr_execution_copy_whole(const tsr_execution *e, const tsr_item *item, bool source, tsr_place dst,
                                    tsr_place src)
{
    const int64_t *shape = source ? item->src_shape : item->dst_shape;
    tsr_box_copy copy;
    copy.dst = dst.base;
    copy.src = src.base;
    copy.element_bytes = item->src->element_bytes;
    copy.ndim = source ? item->src_ndim : item->dst_ndim;
    for (int dim = 0; dim < copy.ndim; dim++) {
        copy.shape[dim] = shape[dim];
        copy.dst_strides[dim] = dst.strides[dim];
        copy.src_strides[dim] = src.strides[dim];
    }
    return e->ops.table->copy_boxes(e->ops.self, e->ops.index, &copy, 1, e->stream);
}

/* Copies this rank's source to where peers read it in an eager move; the copy stays when the call
 * is over. */
static tsr_status show_copy(const tsr_execution *e)
{
    const tsr_bound *b = e->bound;
    const tsr_place shown = {tsr_call_buffer(e->group->comm), b->item->shown_strides};
    return shown.base && b->src.base ? tsr_execution_copy_whole(e, b->item, true, shown, b->src) : TSR_OK;
}

/* Where this rank's views are, one for each item, in memory that peers reach. */
static tsr_view *views_of(const tsr_execution *e)
{
    return tsr_has_shelf(e) ? tsr_holding_of(e->group)->shelf
                            : tsr_scratch_divide(e->plan, tsr_holding_of(e->group)->scratch).views;
}

static void show_all(tsr_execution *e)
{
    tsr_view *views = views_of(e);
    for (size_t i = 0; i < e->plan->count; i++) {
        const tsr_bound *b = &e->bound[i];
        views[i].src = b->src.base;
        views[i].dst = b->dst.base;
        for (int dim = 0; dim < b->item->src->ndim; dim++) {
            views[i].src_strides[dim] = b->src.strides[dim];
            views[i].dst_strides[dim] = b->dst.strides[dim];
        }
    }
    e->call.extra = views;
}

tsr_status tsr_direct_start(tsr_execution *e, tsr_status local)
{
    if (!e->group)
        return local;
    e->call = (tsr_call){.fingerprint = e->plan->hash, .reaches = !e->eager, .placeless = e->placeless};
    if (local == TSR_OK && e->eager)
        local = show_copy(e);
    else if (local == TSR_OK)
        show_all(e);
    e->call.status = tsr_call_place(e->group->comm, &e->call, e->device, e->stream, local);
    return tsr_call_start(e->group->comm, &e->call);
}

static tsr_status read_sources(const tsr_execution *e)
{
    tsr_copies copies;
    tsr_copies_begin(&copies, e);
    for (size_t i = 0; i < e->plan->count; i++) {
        TSR_TRY(pull_moves(e, &e->bound[i], &copies));
        if (e->bound[i].item->reduction_count == 0)
            continue;
        TSR_TRY(tsr_copies_end(&copies));
        TSR_TRY(reduce_to_owners(e, &e->bound[i]));
    }
    return tsr_copies_end(&copies);
}

/* `*over` becomes true if the call ended in the middle, on all ranks. */
static tsr_status read_peers(const tsr_execution *e, bool *over)
{
    tsr_comm *comm = e->group->comm;
    tsr_status status = e->eager ? TSR_OK : tsr_call_follow(comm);
    if (status == TSR_OK)
        status = read_sources(e);
    if (!e->plan->shares)
        return status;
    status = tsr_call_middle(comm, status);
    *over = status != TSR_OK;
    if (status == TSR_OK)
        status = tsr_call_follow(comm);
    return status == TSR_OK ? collect_relayed(e) : status;
}

/* Copies results from the workspace to the destinations, which no peer reads any more. */
static tsr_status unstage(const tsr_execution *e)
{
    for (size_t i = 0; i < e->plan->count; i++) {
        const tsr_bound *b = &e->bound[i];
        if (b->item->reduction_count > 0 && b->result.base != b->dst.base)
            TSR_TRY(tsr_execution_copy_whole(e, b->item, false, b->dst, b->result));
    }
    return TSR_OK;
}

tsr_status tsr_direct_finish(tsr_execution *e)
{
    if (!e->group)
        return read_sources(e);
    bool over = e->eager;
    TSR_TRY(tsr_call_join(e->group->comm, &e->call, tsr_plan_describe_call, e->plan));
    tsr_status status = read_peers(e, &over);
    if (!over)
        status = tsr_call_end(e->group->comm, status);
    return status == TSR_OK ? unstage(e) : status;
}
