/*
 * A move as one of the engine's own collectives. It takes memory in which pieces lie one after the other, in the order of the group's
 * ranks: tensors that lie so are given as they are, what does not is packed into the workspace, or unpacked from it.
 */
#include <tessera/sys/status.h>

#include "base/hash.h"
#include "redistribute/execute.h"
#include "redistribute/native_move.h"

/* What this rank gives to the collective, or gets from it. */
typedef struct pieces {
    const tsr_transfer *at;
    size_t count;
    bool at_source;
    tsr_place place;
} pieces;

static const tsr_native_move *move_of(const tsr_execution *e)
{
    return &e->plan->items[0].native;
}

static size_t element_of(const tsr_execution *e)
{
    return e->plan->items[0].src->element_bytes;
}

static int64_t count_of(const tsr_native_move *move)
{
    return move->pieces.count > 0 ? move->pieces.at[0].elements : 0;
}

static size_t piece_bytes(const tsr_execution *e)
{
    return (size_t)count_of(move_of(e)) * element_of(e);
}

/* All pieces, or this rank's own alone. */
static pieces select(const tsr_execution *e, bool all, bool at_source)
{
    const tsr_transfers *list = &move_of(e)->pieces;
    const tsr_tensor *t = at_source ? &e->bound[0].src : &e->bound[0].dst;
    pieces p = {list->at, list->count, at_source, {t->data, t->strides}};
    if (all || p.count == 0)
        return p;
    while (p.at->peer != e->plan->rank)
        p.at++;
    p.count = 1;
    return p;
}

static pieces given(const tsr_execution *e)
{
    return select(e, move_of(e)->kind == TSR_NATIVE_REDUCE_SCATTER, true);
}

static pieces gotten(const tsr_execution *e)
{
    return select(e, move_of(e)->kind != TSR_NATIVE_REDUCE_SCATTER, false);
}

static tsr_parcel parcel_of(const tsr_transfer *piece)
{
    return (tsr_parcel){piece->peer, 0, piece->first_box, piece->box_count, piece->elements, TSR_NO_TERM};
}

static tsr_extent whole(const tsr_parcel *parcel)
{
    return (tsr_extent){0, parcel->elements};
}

/* The first piece, if the others follow it without gaps; else NULL. */
static char *lie(const tsr_execution *e, const pieces *p)
{
    char *first = NULL;
    for (size_t i = 0; i < p->count; i++) {
        const tsr_parcel parcel = parcel_of(&p->at[i]);
        char *at = tsr_execution_contiguous(e, &parcel, whole(&parcel), p->place, p->at_source);
        if (!at || (i > 0 && at != first + i * piece_bytes(e)))
            return NULL;
        first = i > 0 ? first : at;
    }
    return first;
}

static tsr_status pack(const tsr_execution *e, const pieces *p, char *packed)
{
    for (size_t i = 0; i < p->count; i++) {
        const tsr_parcel parcel = parcel_of(&p->at[i]);
        TSR_TRY(tsr_execution_pack(e, &parcel, whole(&parcel), packed + i * piece_bytes(e), p->place, p->at_source));
    }
    return TSR_OK;
}

static tsr_status unpack(const tsr_execution *e, const pieces *p, char *packed)
{
    for (size_t i = 0; i < p->count; i++) {
        const tsr_parcel parcel = parcel_of(&p->at[i]);
        TSR_TRY(tsr_execution_unpack(e, &parcel, whole(&parcel), p->place, packed + i * piece_bytes(e)));
    }
    return TSR_OK;
}

/* Where the collective puts what it brings: the destination itself, else the front of the workspace. */
static char *landing(const tsr_execution *e, const pieces *p)
{
    char *at = lie(e, p);
    return at ? at : e->workspace;
}

/* Where what this rank gives is packed. The calls that may be made in place are; what is scattered goes behind what is received. */
static char *staging(const tsr_execution *e, char *receive)
{
    const tsr_native_move *move = move_of(e);
    if (move->kind == TSR_NATIVE_REDUCE_SCATTER)
        return e->workspace + tsr_mail_line(piece_bytes(e));
    return move->kind == TSR_NATIVE_ALL_GATHER ? receive + (size_t)tsr_comm_rank(e->native->comm) * piece_bytes(e) : receive;
}

static int root_of(const tsr_execution *e)
{
    return tsr_group_position(e->native, tsr_group_position(e->group, move_of(e)->root));
}

/* Fills in the buffers. A broadcast has but one, which its root fills. */
static tsr_status ready(const tsr_execution *e, tsr_native_call *call)
{
    const pieces from = given(e), to = gotten(e);
    char *receive = landing(e, &to);
    call->receive = receive;
    if (call->kind == TSR_NATIVE_BROADCAST)
        return call->root == tsr_comm_rank(e->native->comm) ? pack(e, &from, receive) : TSR_OK;
    call->send = lie(e, &from);
    if (call->send)
        return TSR_OK;
    call->send = staging(e, receive);
    return pack(e, &from, staging(e, receive));
}

/* Ranks agree first that all could make ready, and that they go this way. */
tsr_status tsr_native_start(tsr_execution *e, tsr_status local)
{
    const tsr_native_move *move = move_of(e);
    tsr_native_call call = {.kind = move->kind,
                            .count = count_of(move),
                            .dtype = e->plan->items[0].src->dtype,
                            .op = move->op,
                            .root = root_of(e),
                            .device = e->device,
                            .stream = e->stream};
    if (local == TSR_OK)
        local = ready(e, &call);
    TSR_TRY(tsr_comm_agree(e->group->comm, tsr_hash_word(e->plan->hash, (uint64_t)move->kind), local, tsr_plan_describe_call, e->plan));
    return call.count > 0 ? tsr_comm_call_native(e->native->comm, &call) : TSR_OK;
}

tsr_status tsr_native_finish(tsr_execution *e)
{
    const pieces to = gotten(e);
    return lie(e, &to) ? TSR_OK : unpack(e, &to, e->workspace);
}
