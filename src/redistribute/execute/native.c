/*
 * A move as one of the engine's own collectives. The engine takes memory in which pieces lie one
 * after the other, in the order of the group's ranks. Tensors that lie so are given as they are;
 * others are packed into the workspace, or unpacked from it.
 */
#include "redistribute/execute/native.h"

#include "base/hash.h"
#include "comm/core/agree.h"
#include "comm/core/traits.h"
#include "redistribute/execute/agreement.h"
#include "redistribute/execute/boxes.h"
#include "redistribute/execute/message.h"
#include "redistribute/schedule/collective.h"
#include "redistribute/schedule/plan_text.h"

#include <tessera/sys/status.h>

static const tsr_item *item_of(const tsr_execution *e)
{
    return &e->plan->items[0];
}

static tsr_place place_of(const tsr_execution *e, bool given)
{
    return given ? e->bound[0].src : e->bound[0].dst;
}

static int64_t count_of(const tsr_execution *e)
{
    return tsr_native_count(&item_of(e)->native);
}

static size_t piece_bytes(const tsr_execution *e)
{
    return (size_t)count_of(e) * item_of(e)->src->element_bytes;
}

static tsr_parcel parcel_of(const tsr_transfer *piece)
{
    return (tsr_parcel){piece->peer, 0, piece->first_box, piece->box_count, piece->elements, TSR_NO_TERM};
}

/* Where the tensor's pieces begin, if they lie as the engine takes them; else NULL. */
static char *find_pieces(const tsr_execution *e, bool given)
{
    const tsr_pieces pieces = tsr_native_pieces(item_of(e), given);
    const tsr_place place = place_of(e, given);
    int64_t offset;
    return tsr_pieces_lie(item_of(e), &pieces, place.strides, &offset) ? place.base + offset : NULL;
}

static tsr_status pack_pieces(const tsr_execution *e, char *packed)
{
    const tsr_pieces pieces = tsr_native_pieces(item_of(e), true);
    for (size_t i = 0; i < pieces.count; i++) {
        const tsr_parcel parcel = parcel_of(&pieces.at[i]);
        const tsr_extent whole = {0, parcel.elements};
        TSR_TRY(tsr_execution_pack(e, &parcel, whole, packed + i * piece_bytes(e), place_of(e, true), true));
    }
    return TSR_OK;
}

static tsr_status unpack_pieces(const tsr_execution *e, char *packed)
{
    const tsr_pieces pieces = tsr_native_pieces(item_of(e), false);
    for (size_t i = 0; i < pieces.count; i++) {
        const tsr_parcel parcel = parcel_of(&pieces.at[i]);
        const tsr_extent whole = {0, parcel.elements};
        TSR_TRY(tsr_execution_unpack(e, &parcel, whole, place_of(e, false), packed + i * piece_bytes(e)));
    }
    return TSR_OK;
}

/* True if this rank can make the collective. Reductions by nodes have scratch for the host's
 * kernels alone. Without a workspace, only tensors that can be packed in the receive buffer may
 * need packing. */
static bool is_able(const tsr_execution *e)
{
    const tsr_native_move *move = &item_of(e)->native;
    if (!e->native || (e->device.driver && tsr_native_goes_by_nodes(e->native->comm, move->kind)))
        return false;
    return count_of(e) == 0 || move->workspace_bytes > 0 ||
           (find_pieces(e, false) && (move->kind != TSR_NATIVE_REDUCE_SCATTER || find_pieces(e, true)));
}

/* Where this rank packs what it gives: in a reduce-scatter behind what it receives, in other
 * collectives where the call may be made in place. */
static char *staging(const tsr_execution *e, char *receive)
{
    switch (item_of(e)->native.kind) {
    case TSR_NATIVE_REDUCE_SCATTER:
        return e->workspace + tsr_mail_line(piece_bytes(e));
    case TSR_NATIVE_ALL_GATHER:
        return receive + (size_t)tsr_comm_rank(e->native->comm) * piece_bytes(e);
    default:
        return receive;
    }
}

static int root_of(const tsr_execution *e)
{
    return tsr_group_position(e->native, tsr_group_position(e->group, item_of(e)->native.root));
}

/* Fills in root and buffers, and packs. A broadcast has one buffer, which its root packs. */
static tsr_status ready(const tsr_execution *e, tsr_native_call *call)
{
    char *receive = find_pieces(e, false);
    call->root = root_of(e);
    call->receive = receive = receive ? receive : e->workspace;
    if (call->kind == TSR_NATIVE_BROADCAST)
        return call->root == tsr_comm_rank(e->native->comm) ? pack_pieces(e, receive) : TSR_OK;
    call->send = find_pieces(e, true);
    if (call->send)
        return TSR_OK;
    call->send = staging(e, receive);
    return pack_pieces(e, staging(e, receive));
}

/* Ranks agree that they make the collective, that none has failed, and whether all are able. In an
 * execution that is not checked, a rank without a workspace takes its peers' tensors to lie as its
 * own do, since their shapes are the same. */
static tsr_status agree_on_collective(const tsr_execution *e, tsr_status local, bool *able)
{
    const uint64_t fingerprint = tsr_hash_word(e->plan->hash, (uint64_t)item_of(e)->native.kind);
    if (!e->checked)
        return tsr_execution_agree(e, local);
    return tsr_comm_agree_able(e->group->comm, fingerprint, local, able, tsr_plan_describe_call, e->plan);
}

/* If not all ranks are able, this execution goes by mail. */
tsr_status tsr_native_start(tsr_execution *e, tsr_status local)
{
    const tsr_item *item = item_of(e);
    tsr_native_call call = {.kind = item->native.kind,
                            .count = count_of(e),
                            .dtype = item->src->dtype,
                            .op = item->native.op,
                            .device = e->device,
                            .stream = e->stream};
    e->native = tsr_native_group(e->plan, e->group);
    e->parts = e->ops.self;
    bool able = local != TSR_OK || is_able(e);
    if (local == TSR_OK && able && call.count > 0)
        local = ready(e, &call);
    TSR_TRY(agree_on_collective(e, local, &able));
    if (!able) {
        e->native = NULL;
        return tsr_message_start(e, TSR_OK);
    }
    if (call.count == 0)
        return TSR_OK;
    const tsr_status status = tsr_comm_call_native(e->native->comm, &call);
    return status == TSR_OK ? TSR_OK : tsr_execution_give_up(e, status);
}

tsr_status tsr_native_finish(tsr_execution *e)
{
    return count_of(e) == 0 || find_pieces(e, false) ? TSR_OK : unpack_pieces(e, e->workspace);
}
