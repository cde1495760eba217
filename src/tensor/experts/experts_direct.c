/*
 * Ranks meet; between that meeting and the next one each rank writes the rows of its tokens to the
 * ranks of their experts, and reads what comes back. Threads do so in the tensors of their calls.
 * Processes share only some memory: what peers cannot reach is copied to such memory before the
 * first meeting, or from there after the last one.
 */
#include "tensor/experts/experts_direct.h"

#include "base/checked.h"
#include "comm/core/call.h"
#include "comm/core/traits.h"
#include "tensor/experts/expert_routes.h"
#include "tensor/experts/expert_rows.h"

#include <tessera/sys/status.h>

/* What peers see of a rank. */
typedef struct shown {
    const int64_t *counts; /* of a dispatch */
    int64_t room;
    tsr_expert_side landing, rows;
} shown;

_Static_assert(sizeof(shown) <= TSR_CALL_BUFFER_BYTES, "it lies in the buffer of a call");

static bool is_of_threads(const tsr_expert_call *call)
{
    return tsr_comm_shares_all(call->plan->group->comm);
}

static const shown *shown_by(const tsr_expert_call *call, int position)
{
    const tsr_comm *const comm = call->plan->group->comm;
    return is_of_threads(call) ? tsr_call_of(comm, position)->extra : tsr_call_buffer_of(comm, position);
}

static tsr_expert_side side_of(const tsr_experts_plan *plan, const tsr_tensor *t)
{
    if (!t)
        return (tsr_expert_side){NULL, 0};
    return (tsr_expert_side){t->data, tsr_expert_stride(plan, t)};
}

/* The rows of a tensor that peers touch: of a dispatch, as many as there is room for. */
static int64_t rows_of(const tsr_expert_call *call, const tsr_tensor *t)
{
    return !t ? 0 : call->dispatches ? t->shape[0] : call->plan->received;
}

/* True if peers in other processes cannot reach the tensor's rows. */
static bool is_hidden(const tsr_expert_call *call, const tsr_tensor *t)
{
    const int64_t rows = rows_of(call, t);
    if (rows == 0 || is_of_threads(call))
        return false;
    const size_t bytes = (size_t)(rows - 1) * tsr_expert_stride(call->plan, t) + call->plan->row_bytes;
    return !tsr_comm_shares(call->plan->group->comm, t->data, bytes);
}

/* Bytes of the rows of a tensor that is hidden, in shared memory. */
static tsr_status add_hidden(const tsr_expert_call *call, const tsr_tensor *t, size_t *bytes)
{
    const size_t row = call->plan->row_bytes;
    if (!is_hidden(call, t))
        return TSR_OK;
    if ((size_t)rows_of(call, t) > (SIZE_MAX - *bytes) / row)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: there is no memory for %lld rows of %zu bytes", call->name,
                              (long long)rows_of(call, t), row);
    *bytes += (size_t)rows_of(call, t) * row;
    return TSR_OK;
}

/* Has peers see rows in shared memory in place of the tensor, if it is hidden. */
static bool move_side(const tsr_expert_call *call, const tsr_tensor *t, char **memory, tsr_expert_side *side)
{
    if (!is_hidden(call, t))
        return false;
    *side = (tsr_expert_side){*memory, call->plan->row_bytes};
    *memory += (size_t)rows_of(call, t) * call->plan->row_bytes;
    return true;
}

/* Takes the shared memory of a call between processes. */
static tsr_status share(const tsr_expert_call *call, shown *out)
{
    tsr_experts_plan *const plan = call->plan;
    const size_t counts = tsr_round_up((size_t)plan->count * sizeof(int64_t) + 1, TSR_LINE);
    size_t bytes = counts;
    void *memory;
    TSR_TRY(add_hidden(call, call->landing, &bytes));
    TSR_TRY(add_hidden(call, call->shown, &bytes));
    TSR_TRY(tsr_row_room_take(&plan->call_rooms, TSR_ROOM_SHOWN, bytes, 1, &memory));
    char *rows = (char *)memory + counts;
    plan->counts = memory;
    move_side(call, call->landing, &rows, &out->landing);
    if (move_side(call, call->shown, &rows, &out->rows))
        tsr_expert_rows_copy(plan, out->rows.data, out->rows.stride, call->shown->data,
                             tsr_expert_stride(plan, call->shown), plan->received);
    return TSR_OK;
}

/* Sets what peers see. */
static tsr_status show(const tsr_expert_call *call, shown *out)
{
    tsr_experts_plan *const plan = call->plan;
    plan->counts = plan->counts_memory;
    *out = (shown){.room = call->dispatches ? call->landing->shape[0] : 0,
                   .landing = side_of(plan, call->landing),
                   .rows = side_of(plan, call->shown)};
    if (!is_of_threads(call))
        TSR_TRY(share(call, out));
    if (call->dispatches)
        tsr_expert_count(plan, call->ids);
    out->counts = plan->counts;
    return TSR_OK;
}

static tsr_status route(const tsr_expert_call *call)
{
    tsr_experts_plan *const plan = call->plan;
    for (int position = 0; position < plan->group->count; position++) {
        const shown *const theirs = shown_by(call, position);
        plan->all_counts[position] = theirs->counts;
        plan->rooms[position] = theirs->room;
    }
    return tsr_expert_route(plan, call->name, call->ids);
}

/* Points at what ranks show: where rows land, or where experts' rows are. */
static void point(const tsr_expert_call *call, bool landing)
{
    for (int position = 0; position < call->plan->group->count; position++) {
        const shown *const theirs = shown_by(call, position);
        call->plan->sides[position] = landing ? theirs->landing : theirs->rows;
    }
}

static tsr_status move_rows(const tsr_expert_call *call)
{
    TSR_TRY(tsr_call_follow(call->plan->group->comm));
    if (call->dispatches)
        TSR_TRY(route(call));
    if (call->shown) {
        point(call, false);
        tsr_expert_read(call);
    }
    if (call->landing) {
        point(call, true);
        tsr_expert_tokens_scatter(call->plan, call->tokens, call->weights);
    }
    return TSR_OK;
}

static tsr_status run(const tsr_expert_call *call, tsr_status local, shown *mine)
{
    tsr_comm *const comm = call->plan->group->comm;
    const tsr_call begun = {.fingerprint = call->fingerprint,
                            .status = local,
                            .reaches = true,
                            .shows = !is_of_threads(call),
                            .extra = mine};
    TSR_TRY(tsr_call_begin(comm, &begun, tsr_expert_describe, call));
    TSR_TRY(tsr_call_end(comm, move_rows(call)));
    if (is_hidden(call, call->landing))
        tsr_expert_rows_copy(call->plan, call->landing->data, tsr_expert_stride(call->plan, call->landing),
                             mine->landing.data, mine->landing.stride, call->plan->received);
    return TSR_OK;
}

tsr_status tsr_experts_run_directly(const tsr_expert_call *call, tsr_status local)
{
    tsr_comm *const comm = call->plan->group->comm;
    shown mine = {.counts = NULL};
    if (local == TSR_OK)
        local = show(call, &mine);
    if (is_of_threads(call))
        return run(call, local, &mine);
    shown *const buffer = tsr_call_buffer(comm);
    if (buffer)
        *buffer = mine;
    const tsr_status status = run(call, local, &mine);
    tsr_call_forget(comm);
    return status;
}
