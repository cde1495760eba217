/*
 * Ranks take memory for all that may come, agree that all can go on, and tell one another how many
 * slots they have for each expert. Then each rank computes alone where all rows lie, and one
 * exchange brings them. Rows of a message lie in the order of experts, then tokens, then slots; on
 * the way back they lie in the same order.
 */
#include "tensor/experts/experts_message.h"

#include "base/checked.h"
#include "comm/collectives/parts.h"
#include "comm/core/agree.h"
#include "tensor/experts/expert_routes.h"
#include "tensor/experts/expert_rows.h"

#include <tessera/sys/status.h>

#include <string.h>

/* A call's memory. */
typedef struct mail {
    const tsr_expert_call *call;
    tsr_experts_plan *plan;
    int ranks;
    int64_t *told, *heard;               /* what this rank tells each of the others, and hears: counts and room */
    int64_t *token_bytes, *expert_bytes; /* of messages with rows of this rank's tokens, and of its experts */
    char *of_tokens, *of_experts;        /* these messages */
} mail;

/* Numbers that ranks tell one another: slots of each expert, and the room. */
static int64_t numbers_told(const mail *m)
{
    return m->call->dispatches ? m->plan->count + 1 : 0;
}

static tsr_status take_numbers(mail *m)
{
    const size_t told = (size_t)m->ranks * (size_t)numbers_told(m), ranks = (size_t)m->ranks;
    void *memory;
    TSR_TRY(tsr_row_room_take(&m->plan->call_rooms, TSR_ROOM_COUNTS, 2 * told + 2 * ranks, sizeof(int64_t), &memory));
    m->told = memory;
    m->heard = m->told + told;
    m->token_bytes = m->heard + told;
    m->expert_bytes = m->token_bytes + ranks;
    return TSR_OK;
}

static tsr_status take_rows(const mail *m, tsr_row_use use, int64_t rows, char **out)
{
    void *memory;
    const tsr_status status = tsr_row_room_take(&m->plan->call_rooms, use, (size_t)rows, m->plan->row_bytes, &memory);
    *out = status == TSR_OK ? memory : NULL;
    return status;
}

/* Takes memory for the most rows that the call may send and receive. Does not communicate. */
static tsr_status prepare(mail *m)
{
    const tsr_experts_plan *const plan = m->plan;
    const int64_t tokens = m->call->dispatches ? m->call->ids->shape[0] : plan->token_count;
    const int64_t rows = m->call->dispatches ? m->call->landing->shape[0] : plan->received;
    TSR_TRY(take_numbers(m));
    TSR_TRY(take_rows(m, TSR_ROOM_SENT, tokens * plan->slots * plan->table->columns.count, &m->of_tokens));
    return take_rows(m, TSR_ROOM_RECEIVED, rows, &m->of_experts);
}

/* Has all ranks hear the numbers of all. */
static tsr_status tell_numbers(const mail *m)
{
    const int64_t numbers = numbers_told(m);
    tsr_experts_plan *const plan = m->plan;
    plan->counts = plan->counts_memory;
    tsr_expert_count(plan, m->call->ids);
    for (int rank = 0; rank < m->ranks; rank++) {
        memcpy(m->told + rank * numbers, plan->counts, (size_t)plan->count * sizeof *plan->counts);
        m->told[rank * numbers + plan->count] = m->call->landing->shape[0];
        m->token_bytes[rank] = m->expert_bytes[rank] = numbers * (int64_t)sizeof(int64_t);
    }
    TSR_TRY(
        tsr_parts_exchange(plan->group->comm, m->told, m->token_bytes, m->heard, m->expert_bytes, tsr_device_host()));
    for (int rank = 0; rank < m->ranks; rank++) {
        plan->all_counts[rank] = m->heard + rank * numbers;
        plan->rooms[rank] = plan->all_counts[rank][plan->count];
    }
    return TSR_OK;
}

static int64_t arrivals_from(const tsr_experts_plan *plan, int position)
{
    int64_t rows = 0;
    for (int64_t e = 0; e < plan->own_count; e++)
        rows += plan->arrivals[position * plan->own_count + e];
    return rows;
}

/* Sets the bytes of messages, and where this rank's tokens find their rows among them. */
static void size_messages(const mail *m)
{
    const tsr_experts_plan *const plan = m->plan;
    const int64_t row = (int64_t)plan->row_bytes;
    char *at = m->of_tokens;
    for (int rank = 0; rank < m->ranks; rank++) {
        const bool is_peer = tsr_expert_is_peer(plan, rank);
        m->token_bytes[rank] = is_peer ? plan->sent[plan->table->ranks[rank].rows] * row : 0;
        m->expert_bytes[rank] = arrivals_from(plan, rank) * row;
        plan->sides[rank] = (tsr_expert_side){at, plan->row_bytes};
        at += m->token_bytes[rank];
    }
}

/* Where the rows of the rank at `position` begin among the messages of experts. */
static char *message_of(const mail *m, int position)
{
    char *at = m->of_experts;
    for (int rank = 0; rank < position; rank++)
        at += m->expert_bytes[rank];
    return at;
}

/* Copies rows between the messages of this rank's experts and its tensor of rows. */
static void copy_messages(const mail *m, const tsr_tensor *rows, bool to_rows)
{
    tsr_experts_plan *const plan = m->plan;
    const size_t stride = tsr_expert_stride(plan, rows), bytes = plan->row_bytes;
    int64_t *const before = plan->next; /* rows of each expert from ranks before */
    memset(before, 0, (size_t)plan->own_count * sizeof *before);
    for (int turn = 0; turn < m->ranks; turn++) {
        const int position = plan->order[turn];
        char *message = message_of(m, position);
        int64_t start = 0;
        for (int64_t e = 0; e < plan->own_count; start += plan->sizes[e++]) {
            const int64_t count = plan->arrivals[position * plan->own_count + e];
            if (count == 0)
                continue;
            char *const place = (char *)rows->data + (size_t)(start + before[e]) * stride;
            if (to_rows)
                tsr_expert_rows_copy(plan, place, stride, message, bytes, count);
            else
                tsr_expert_rows_copy(plan, message, bytes, place, stride, count);
            message += (size_t)count * bytes;
            before[e] += count;
        }
    }
}

static tsr_status move_rows(const mail *m)
{
    const tsr_expert_call *const call = m->call;
    tsr_comm *const comm = m->plan->group->comm;
    size_messages(m);
    if (call->shown) {
        copy_messages(m, call->shown, false);
        TSR_TRY(
            tsr_parts_exchange(comm, m->of_experts, m->expert_bytes, m->of_tokens, m->token_bytes, tsr_device_host()));
        tsr_expert_read(call);
    }
    if (call->landing) {
        tsr_expert_tokens_scatter(m->plan, call->tokens, call->weights);
        TSR_TRY(
            tsr_parts_exchange(comm, m->of_tokens, m->token_bytes, m->of_experts, m->expert_bytes, tsr_device_host()));
        copy_messages(m, call->landing, true);
    }
    return TSR_OK;
}

tsr_status tsr_experts_run_by_messages(const tsr_expert_call *call, tsr_status local)
{
    tsr_experts_plan *const plan = call->plan;
    mail m = {.call = call, .plan = plan, .ranks = plan->group->count};
    if (local == TSR_OK)
        local = prepare(&m);
    TSR_TRY(tsr_comm_agree(plan->group->comm, call->fingerprint, local, tsr_expert_describe, call));
    if (call->dispatches) {
        TSR_TRY(tell_numbers(&m));
        TSR_TRY(tsr_expert_route(plan, call->name, call->ids));
    }
    return move_rows(&m);
}
