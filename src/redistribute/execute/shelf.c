#include "redistribute/execute/shelf.h"

#include "comm/core/traits.h"
#include "redistribute/execute/direct.h"

#include <tessera/sys/status.h>

static size_t shard_bytes(const tsr_item *item, bool inside, int ndim, const int64_t *shape)
{
    size_t bytes = inside ? item->src->element_bytes : 0;
    for (int dim = 0; dim < ndim; dim++)
        bytes *= (size_t)shape[dim];
    return bytes;
}

static size_t source_bytes(const tsr_item *item)
{
    return shard_bytes(item, item->in_src, item->src_ndim, item->src_shape);
}

/* 0 if peers do not touch the destination: they do only where ranks give others results, or what
 * they have taken for them. */
static size_t destination_bytes(const tsr_item *item)
{
    return item->results || item->shares ? shard_bytes(item, item->in_dst, item->dst_ndim, item->dst_shape) : 0;
}

static size_t views_bytes(const tsr_plan *plan)
{
    return tsr_mail_line(plan->count * sizeof(tsr_view));
}

size_t tsr_shelf_bytes(const tsr_plan *plan)
{
    if (plan->options.mode != TSR_MODE_DIRECT || plan->local || plan->options.rank < 0)
        return 0;
    size_t bytes = views_bytes(plan);
    for (size_t i = 0; i < plan->count; i++)
        bytes += tsr_mail_line(source_bytes(&plan->items[i])) + tsr_mail_line(destination_bytes(&plan->items[i]));
    return bytes;
}

/* True if peers reach the memory from its first byte to its last. */
static bool is_reached(const tsr_execution *e, tsr_place place, int ndim, const int64_t *shape, size_t element_bytes)
{
    int64_t last = 0;
    for (int dim = 0; dim < ndim; dim++)
        last += (shape[dim] - 1) * place.strides[dim];
    return tsr_comm_shares(e->group->comm, place.base, ((size_t)last + 1) * element_bytes);
}

/* Copies a source that peers do not reach to `at`. */
static tsr_status shelve_source(tsr_execution *e, tsr_bound *b, char *at)
{
    const tsr_item *item = b->item;
    if (is_reached(e, b->src, item->src_ndim, item->src_shape, item->src->element_bytes))
        return TSR_OK;
    const tsr_place copy = {at, item->src_strides};
    TSR_TRY(tsr_execution_copy_whole(e, item, true, copy, b->src));
    b->src = copy;
    return TSR_OK;
}

static void shelve_destination(const tsr_execution *e, tsr_bound *b, char *at)
{
    const tsr_item *item = b->item;
    if (!is_reached(e, b->dst, item->dst_ndim, item->dst_shape, item->dst->element_bytes))
        b->dst = (tsr_place){at, item->dst_strides};
}

tsr_status tsr_shelf_begin(tsr_execution *e)
{
    for (size_t i = 0; i < e->plan->count; i++)
        e->bound[i].given = e->bound[i].dst;
    char *at = (char *)tsr_holding_of(e->group)->shelf + views_bytes(e->plan);
    for (size_t i = 0; i < e->plan->count; i++) {
        tsr_bound *b = &e->bound[i];
        const size_t source = source_bytes(b->item), destination = destination_bytes(b->item);
        if (source > 0)
            TSR_TRY(shelve_source(e, b, at));
        at += tsr_mail_line(source);
        if (destination > 0)
            shelve_destination(e, b, at);
        at += tsr_mail_line(destination);
    }
    return TSR_OK;
}

tsr_status tsr_shelf_end(const tsr_execution *e)
{
    for (size_t i = 0; i < e->plan->count; i++) {
        const tsr_bound *b = &e->bound[i];
        if (b->dst.base != b->given.base)
            TSR_TRY(tsr_execution_copy_whole(e, b->item, false, b->given, b->dst));
    }
    return TSR_OK;
}
