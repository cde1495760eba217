#include <tessera/sys/status.h>

#include "redistribute/execute.h"
#include "redistribute/staging.h"

/* What an exchange in the making has used so far of workspace and message list. */
typedef struct exchange {
    const tsr_execution *e;
    char *staging;
    tsr_message *messages; /* sends first, then receives */
    size_t send_count, receive_count;
} exchange;

static tsr_place source(const tsr_execution *e)
{
    return (tsr_place){e->src.data, e->src.strides};
}

static tsr_place destination(const tsr_execution *e)
{
    return (tsr_place){e->dst.data, e->dst.strides};
}

static char *take(exchange *x, int64_t elements)
{
    char *staging = x->staging;
    x->staging += tsr_staging_bytes(x->e->plan, elements);
    return staging;
}

static void add_message(exchange *x, bool is_send, int64_t peer, void *data, int64_t elements)
{
    tsr_message *message = &x->messages[x->send_count + x->receive_count];
    message->peer = tsr_group_position(x->e->group, peer);
    message->data = data;
    message->bytes = (size_t)elements * x->e->plan->src->element_bytes;
    *(is_send ? &x->send_count : &x->receive_count) += 1;
}

static tsr_status run(const exchange *x)
{
    const tsr_message *receives = x->messages + x->send_count;
    return tsr_comm_exchange(x->e->group->comm, x->messages, x->send_count, receives, x->receive_count, x->e->device, x->e->stream);
}

static tsr_status agree(const tsr_execution *e, tsr_status local)
{
    return tsr_comm_agree(e->group->comm, e->plan->hash, local, tsr_plan_describe_call, e->plan);
}

static tsr_status post_sends(exchange *x)
{
    const tsr_transfers *sends = &x->e->plan->sends;
    for (size_t i = 0; i < sends->count; i++) {
        const tsr_transfer *send = &sends->at[i];
        void *data = tsr_execution_contiguous(x->e, send->first_box, send->box_count, source(x->e), true);
        if (!data) {
            data = take(x, send->elements);
            TSR_TRY(tsr_execution_pack(x->e, send->first_box, send->box_count, data, source(x->e), true));
        }
        add_message(x, true, send->peer, data, send->elements);
    }
    return TSR_OK;
}

/* Where a transfer is received: its place in the destination if that has no gaps, else the staging. */
static void *landing(const exchange *x, const tsr_transfer *t, char *staging)
{
    void *data = tsr_execution_contiguous(x->e, t->first_box, t->box_count, destination(x->e), false);
    return data ? data : staging;
}

static void post_receives(exchange *x, const tsr_transfers *transfers)
{
    for (size_t i = 0; i < transfers->count; i++) {
        const tsr_transfer *t = &transfers->at[i];
        if (t->peer != x->e->plan->rank)
            add_message(x, false, t->peer, landing(x, t, take(x, t->elements)), t->elements);
    }
}

/* `staging` is what post_receives() began with. */
static tsr_status land(const exchange *x, const tsr_transfers *transfers, char *staging)
{
    for (size_t i = 0; i < transfers->count; i++) {
        const tsr_transfer *t = &transfers->at[i];
        if (t->peer == x->e->plan->rank) {
            if (x->e->src.data != x->e->dst.data)
                TSR_TRY(tsr_execution_copy(x->e, t->first_box, t->box_count, destination(x->e), source(x->e)));
            continue;
        }
        if (landing(x, t, staging) == staging)
            TSR_TRY(tsr_execution_unpack(x->e, t->first_box, t->box_count, destination(x->e), staging));
        staging += tsr_staging_bytes(x->e->plan, t->elements);
    }
    return TSR_OK;
}

static void post_terms(exchange *x)
{
    const tsr_plan *plan = x->e->plan;
    for (size_t i = 0; i < plan->reduction_count; i++) {
        const tsr_reduction *r = &plan->reductions[i];
        for (size_t term = 0; term < (size_t)plan->problem.terms; term++) {
            const int64_t peer = plan->contributors[r->first_term + term];
            if (peer != plan->rank)
                add_message(x, false, peer, take(x, r->elements), r->elements);
        }
    }
}

/* Own terms are read in place, others packed one box after the other from each term's staging on. */
static void point(const tsr_execution *e, const tsr_reduction *r, const tsr_reduce_arrays *arrays, size_t box, const char *staging,
                  int64_t before)
{
    const tsr_plan *plan = e->plan;
    const int ndim = plan->src->ndim;
    for (int64_t term = 0; term < plan->problem.terms; term++) {
        int64_t *strides = arrays->src_strides[term];
        if (plan->contributors[r->first_term + (size_t)term] == plan->rank) {
            for (int dim = 0; dim < ndim; dim++)
                strides[dim] = e->src.strides[dim];
            arrays->src[term] = (char *)e->src.data + tsr_execution_offset(e, box, strides, true);
            continue;
        }
        tsr_execution_packed(e, box, strides);
        arrays->src[term] = staging + before * (int64_t)plan->src->element_bytes;
        staging += tsr_staging_bytes(plan, r->elements);
    }
    arrays->dst[0] = (char *)e->dst.data + tsr_execution_offset(e, box, e->dst.strides, false);
    for (int dim = 0; dim < ndim; dim++)
        arrays->dst_strides[0][dim] = e->dst.strides[dim];
}

static tsr_status reduce(const tsr_execution *e, const tsr_reduce_arrays *arrays, const char *staging)
{
    const tsr_plan *plan = e->plan;
    tsr_box_reduce reduce = tsr_execution_reduce(e, arrays, 1);
    for (size_t i = 0; i < plan->reduction_count; i++) {
        const tsr_reduction *r = &plan->reductions[i];
        int64_t before = 0;
        for (size_t box = r->first_box; box < r->first_box + r->box_count; box++) {
            point(e, r, arrays, box, staging, before);
            tsr_execution_shape(e, &reduce, box);
            TSR_TRY(e->ops.table->reduce(e->ops.self, e->ops.index, &reduce, e->stream));
            int64_t strides[TSR_MAX_DIMS];
            before += tsr_execution_packed(e, box, strides);
        }
        for (int64_t term = 0; term < plan->problem.terms; term++)
            if (plan->contributors[r->first_term + (size_t)term] != plan->rank)
                staging += tsr_staging_bytes(plan, r->elements);
    }
    return TSR_OK;
}

/* This rank's own part of what was received, after the first exchange. */
static tsr_status take_sources(const exchange *x, const tsr_reduce_arrays *arrays, char *received)
{
    TSR_TRY(land(x, &x->e->plan->moves, received));
    return reduce(x->e, arrays, received);
}

/* Every home gives each part that it reduced to the other owners, one message a region. */
static tsr_status post_results(exchange *x)
{
    const tsr_execution *e = x->e;
    const tsr_plan *plan = e->plan;
    for (size_t i = 0; i < plan->reduction_count; i++) {
        const tsr_reduction *r = &plan->reductions[i];
        void *data = tsr_execution_contiguous(e, r->first_box, r->box_count, destination(e), false);
        if (!data) {
            data = take(x, r->elements);
            TSR_TRY(tsr_execution_pack(e, r->first_box, r->box_count, data, destination(e), false));
        }
        for (size_t owner = 0; owner < plan->owner_count; owner++)
            if (plan->owners[owner] != plan->rank)
                add_message(x, true, plan->owners[owner], data, r->elements);
    }
    return TSR_OK;
}

/* The second exchange. `local`: how the first ended on this rank. */
static tsr_status exchange_results(const tsr_execution *e, const tsr_reduce_arrays *arrays, tsr_status local)
{
    exchange x = {e, e->workspace, arrays->messages, 0, 0};
    if (local == TSR_OK)
        local = post_results(&x);
    TSR_TRY(agree(e, local));
    char *received = x.staging;
    post_receives(&x, &e->plan->results);
    TSR_TRY(run(&x));
    return land(&x, &e->plan->results, received);
}

/* The first exchange carries what is moved, and what is to be reduced here. Before each, ranks agree that all have packed theirs: nobody
 * waits for the messages of a rank that failed by itself. */
tsr_status tsr_execute_message(const tsr_execution *e, tsr_status local)
{
    const tsr_reduce_arrays arrays = tsr_execution_arrays(e);
    exchange x = {e, e->workspace, arrays.messages, 0, 0};
    if (local == TSR_OK)
        local = post_sends(&x);
    TSR_TRY(agree(e, local));
    char *received = x.staging;
    post_receives(&x, &e->plan->moves);
    post_terms(&x);
    TSR_TRY(run(&x));
    local = take_sources(&x, &arrays, received);
    return tsr_plan_has_results(e->plan) ? exchange_results(e, &arrays, local) : local;
}
