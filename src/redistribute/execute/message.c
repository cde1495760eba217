#include "redistribute/execute/message.h"

#include "base/checked.h"
#include "comm/collectives/exchange.h"
#include "device/host/choose.h"
#include "redistribute/execute/agreement.h"
#include "redistribute/execute/boxes.h"
#include "redistribute/execute/fragments.h"

#include <tessera/sys/status.h>

/* In place of an offset: the parcel lands in the destination, or has nothing in this round. */
#define NOT_STAGED SIZE_MAX

/* With at least this many rounds, of half a MiB each, a host stores each round as part of a large
 * move. */
#define MANY_ROUNDS 16

/* One round of one phase, in its half of the staging and of the lists. */
typedef struct round {
    const tsr_execution *e;
    int phase, half;
    int64_t at;
    char *staging; /* what is left of the half */
    tsr_message *messages;
    size_t send_count, receive_count;
} round;

static const tsr_bound *bound_of(const tsr_execution *e, const tsr_parcel *parcel)
{
    return &e->bound[parcel->item];
}

static tsr_extent range_of(const round *r, const tsr_parcel *parcel)
{
    return tsr_mail_range(parcel->elements, r->at, r->e->rounds);
}

static size_t bytes_of(const round *r, const tsr_parcel *parcel)
{
    const tsr_extent range = range_of(r, parcel);
    return tsr_mail_bytes(&r->e->plan->items[parcel->item], range.end - range.begin);
}

/* Where a parcel lies that is sent: in the first phase in the source, later in the destination. */
static tsr_place origin_of(const round *r, const tsr_parcel *parcel)
{
    const tsr_bound *b = bound_of(r->e, parcel);
    return r->phase == 0 ? b->src : b->dst;
}

static tsr_place target_of(const tsr_execution *e, const tsr_parcel *parcel)
{
    return bound_of(e, parcel)->dst;
}

static round begin_round(const tsr_execution *e, int phase, int64_t at)
{
    const int half = (int)(at & 1);
    const size_t half_bytes = tsr_round_down(e->plan->workspace_bytes / 2, TSR_LINE);
    return (round){.e = e,
                   .phase = phase,
                   .half = half,
                   .at = at,
                   .staging = half && e->workspace ? e->workspace + half_bytes : e->workspace,
                   .messages = e->scratch.messages[half]};
}

/* The parcels from `first` on that go to one peer or come from it, and their bytes in a round. */
typedef struct bundle {
    size_t first, count, bytes;
    int64_t peer;
} bundle;

static bool next_bundle(const round *r, const tsr_mail *mail, bundle *b)
{
    b->first += b->count;
    b->count = b->bytes = 0;
    if (b->first == mail->count)
        return false;
    b->peer = mail->at[b->first].peer;
    for (size_t i = b->first; i < mail->count && mail->at[i].peer == b->peer; i++) {
        b->bytes += bytes_of(r, &mail->at[i]);
        b->count++;
    }
    return true;
}

/* A message of one parcel has no gap before a next parcel, so it ends with its last element. */
static size_t message_bytes(const round *r, const bundle *b, const tsr_mail *mail)
{
    if (b->count > 1)
        return b->bytes;
    const tsr_extent range = range_of(r, &mail->at[b->first]);
    return (size_t)(range.end - range.begin) * r->e->plan->items[mail->at[b->first].item].src->element_bytes;
}

static void add_message(round *r, int64_t peer, void *data, size_t bytes, size_t *count)
{
    tsr_message *message = &r->messages[r->send_count + r->receive_count];
    message->peer = tsr_group_position(r->e->group, peer);
    message->data = data;
    message->bytes = bytes;
    *count += 1;
}

static tsr_status pack_bundle(round *r, const tsr_mail *mail, const bundle *b)
{
    char *at = r->staging;
    for (size_t i = b->first; i < b->first + b->count; i++) {
        const tsr_parcel *parcel = &mail->at[i];
        TSR_TRY(tsr_execution_pack(r->e, parcel, range_of(r, parcel), at, origin_of(r, parcel), r->phase == 0));
        at += bytes_of(r, parcel);
    }
    return TSR_OK;
}

/* Packs and lists what the round sends. After a failure, the messages that peers wait for are
 * listed all the same. */
static tsr_status pack_round(round *r)
{
    const tsr_mail *mail = &r->e->plan->out[r->phase];
    tsr_status status = TSR_OK;
    for (bundle b = {0}; next_bundle(r, mail, &b);) {
        if (b.bytes == 0)
            continue;
        const tsr_parcel *first = &mail->at[b.first];
        void *data =
            b.count > 1 ? NULL
                        : tsr_execution_contiguous(r->e, first, range_of(r, first), origin_of(r, first), r->phase == 0);
        if (!data) {
            data = r->staging;
            if (status == TSR_OK)
                status = pack_bundle(r, mail, &b);
            r->staging += tsr_mail_line(b.bytes);
        }
        add_message(r, b.peer, data, message_bytes(r, &b, mail), &r->send_count);
    }
    return status;
}

static void stage_bundle(round *r, const tsr_mail *mail, const bundle *b)
{
    size_t at = (size_t)(r->staging - r->e->workspace);
    for (size_t i = b->first; i < b->first + b->count; i++) {
        r->e->scratch.offsets[r->half][i] = at;
        at += bytes_of(r, &mail->at[i]);
    }
}

static void expect(round *r)
{
    const tsr_mail *mail = &r->e->plan->in[r->phase];
    for (bundle b = {0}; next_bundle(r, mail, &b);) {
        const tsr_parcel *first = &mail->at[b.first];
        const bool lands = b.count == 1 && first->term == TSR_NO_TERM;
        void *data =
            lands ? tsr_execution_contiguous(r->e, first, range_of(r, first), target_of(r->e, first), false) : NULL;
        if (data) {
            r->e->scratch.offsets[r->half][b.first] = NOT_STAGED;
        } else {
            data = r->staging;
            stage_bundle(r, mail, &b);
            r->staging += tsr_mail_line(b.bytes);
        }
        if (b.bytes > 0)
            add_message(r, b.peer, data, message_bytes(r, &b, mail), &r->receive_count);
    }
}

static tsr_status post_round(round *r)
{
    expect(r);
    const tsr_exchange given = {.caller = "tsr_comm_exchange_start",
                                .sends = r->messages,
                                .receives = r->messages + r->send_count,
                                .send_count = r->send_count,
                                .receive_count = r->receive_count,
                                .device = r->e->device,
                                .stream = r->e->stream,
                                .staging = r->e->workspace,
                                .staging_bytes = r->e->plan->workspace_bytes,
                                .landing = r->e->parts};
    const tsr_status status = tsr_exchange_start(r->e->group->comm, &given);
    return status == TSR_OK ? TSR_OK : tsr_execution_give_up(r->e, status);
}

static tsr_status unpack_round(const round *r)
{
    const tsr_mail *mail = &r->e->plan->in[r->phase];
    for (size_t i = 0; i < mail->count; i++) {
        const tsr_parcel *parcel = &mail->at[i];
        const size_t offset = r->e->scratch.offsets[r->half][i];
        if (parcel->term == TSR_NO_TERM && offset != NOT_STAGED)
            TSR_TRY(tsr_execution_unpack(r->e, parcel, range_of(r, parcel), target_of(r->e, parcel),
                                         r->e->workspace + offset));
    }
    return TSR_OK;
}

/* Points at the terms of a fragment and at its result. Own terms are read in place; other ranks'
 * terms lie packed in their parcels, `before` elements into the round's range. */
static void point_at_fragment(const round *r, const tsr_bound *b, const tsr_reduction *reduction, const tsr_fragment *f,
                              int64_t before)
{
    const tsr_item *item = b->item;
    const tsr_reduce_arrays *arrays = &r->e->scratch.reduce;
    for (int64_t term = 0; term < item->problem.terms; term++) {
        const size_t parcel = item->term_parcels[reduction->first_term + (size_t)term];
        int64_t *strides = arrays->src_strides[term];
        if (parcel == TSR_NO_TERM) {
            arrays->src[term] = tsr_execution_find(item, f, b->src, true, strides);
            continue;
        }
        tsr_fragment_strides(f, item->src->ndim, strides);
        arrays->src[term] =
            r->e->workspace + r->e->scratch.offsets[r->half][parcel] + before * (int64_t)item->src->element_bytes;
    }
    arrays->dst[0] = tsr_execution_find(item, f, b->dst, false, arrays->dst_strides[0]);
}

static tsr_status reduce_part(const round *r, const tsr_bound *b, const tsr_reduction *reduction)
{
    const tsr_extent range = tsr_mail_range(reduction->elements, r->at, r->e->rounds);
    tsr_box_reduce reduce = tsr_execution_reduce(b->item, &r->e->scratch.reduce, 1);
    tsr_fragments fragments = tsr_fragments_begin(b->item, reduction->first_box, range.begin, range.end);
    tsr_fragment f;
    for (int64_t before = 0; tsr_fragments_next(&fragments, &f); before += f.elements) {
        point_at_fragment(r, b, reduction, &f, before);
        for (int dim = 0; dim < reduce.ndim; dim++)
            reduce.shape[dim] = f.shape[dim];
        TSR_TRY(r->e->ops.table->reduce(r->e->parts, r->e->ops.index, &reduce, r->e->stream));
    }
    return TSR_OK;
}

static tsr_status reduce_round(const round *r)
{
    for (size_t i = 0; i < r->e->plan->count; i++) {
        const tsr_bound *b = &r->e->bound[i];
        for (size_t k = 0; k < b->item->reduction_count; k++)
            TSR_TRY(reduce_part(r, b, &b->item->reductions[k]));
    }
    return TSR_OK;
}

static tsr_status settle_round(const round *r)
{
    TSR_TRY(unpack_round(r));
    return r->phase == 0 ? reduce_round(r) : TSR_OK;
}

/* Copies what stays on this rank, while the first messages travel. */
static tsr_status keep_own_moves(const tsr_execution *e)
{
    tsr_copies copies;
    tsr_copies_begin(&copies, e);
    for (size_t i = 0; i < e->plan->count; i++) {
        const tsr_bound *b = &e->bound[i];
        for (size_t k = 0; k < b->item->moves.count && b->item->moves.at[k].peer == e->plan->options.rank; k++)
            if (b->src.base != b->dst.base)
                TSR_TRY(tsr_copies_add(&copies, b->item, &b->item->moves.at[k], b->dst, b->src, true));
    }
    return tsr_copies_end(&copies);
}

/* Packs and posts the first round of a phase. In between ranks agree that all could pack, so that
 * no rank waits for the messages of one that failed by itself. */
static tsr_status begin_phase(const tsr_execution *e, int phase, tsr_status local)
{
    round r = begin_round(e, phase, 0);
    if (local == TSR_OK)
        local = pack_round(&r);
    TSR_TRY(tsr_execution_agree(e, local));
    return post_round(&r);
}

static void note_failure(tsr_execution *e, tsr_status status)
{
    if (e->local == TSR_OK)
        e->local = status;
}

/* A rank that fails by itself in a later round goes on sending what it has, so that no peer waits,
 * and tells its failure after the last round. In an execution that is not checked no peer would
 * hear it, so the rank gives up. */
static tsr_status run_phase(tsr_execution *e, int phase)
{
    round current = begin_round(e, phase, 0);
    for (int64_t at = 0; at < e->rounds; at++) {
        round next = begin_round(e, phase, at + 1);
        const bool more = at + 1 < e->rounds;
        if (more)
            note_failure(e, pack_round(&next));
        TSR_TRY(tsr_exchange_finish(e->group->comm));
        if (more && !e->checked && e->local != TSR_OK)
            return tsr_execution_give_up(e, e->local);
        if (more)
            TSR_TRY(post_round(&next));
        note_failure(e, settle_round(&current));
        current = next;
    }
    return TSR_OK;
}

/* The kernels for the results of a round. With many rounds on the host, those for parts of a large
 * move: together they write more than the caches hold. */
static void *find_parts(const tsr_execution *e)
{
    if (e->device.driver || e->rounds < MANY_ROUNDS)
        return e->ops.self;
    return (void *)tsr_choices_of_parts(e->ops.self);
}

tsr_status tsr_message_start(tsr_execution *e, tsr_status local)
{
    e->scratch = tsr_scratch_divide(e->plan, tsr_holding_of(e->group)->scratch);
    e->rounds = __atomic_load_n(&e->plan->found->agreed_rounds, __ATOMIC_RELAXED);
    e->parts = find_parts(e);
    e->local = TSR_OK;
    return begin_phase(e, 0, local);
}

tsr_status tsr_message_finish(tsr_execution *e)
{
    note_failure(e, keep_own_moves(e));
    TSR_TRY(run_phase(e, 0));
    for (int phase = 1; phase < TSR_PHASES; phase++) {
        if (!(phase == 1 ? e->plan->results : e->plan->shares))
            continue;
        TSR_TRY(begin_phase(e, phase, e->local));
        TSR_TRY(run_phase(e, phase));
    }
    return e->rounds > 1 && e->checked ? tsr_execution_agree(e, e->local) : e->local;
}
