#include "tensor/rows/messages/mail_near.h"

#include "comm/core/call.h"
#include "comm/core/traits.h"

#include <tessera/sys/status.h>

/* Memory is the host's, so that calls have no streams that tsr_call_follow() would order. */

/* What ranks near read of a rank, in the buffer of its call: of a gather, one a table; of an
 * update, one. */
typedef struct shown {
    const char *memory; /* a shard; or where requests begin, in the order of ranks near, and the requests */
    size_t stride;      /* bytes from row to row of the shard */
} shown;

static bool hides(const tsr_row_mail *mail, const void *memory, size_t bytes)
{
    return bytes > 0 && !tsr_comm_shares(mail->near->comm, memory, bytes);
}

/* Takes memory for requests to ranks near, and finds where they begin there. */
static tsr_status lay_requests(const tsr_row_mail *mail, uint64_t *hidden)
{
    const tsr_group *const near = mail->near;
    int64_t total = (int64_t)tsr_round_up((size_t)near->count * sizeof(int64_t), TSR_ALIGNMENT), bytes;
    void *memory;
    for (int64_t rank = 0; rank < mail->ranks; rank++)
        if (tsr_row_mail_is_near(mail, rank) &&
            (!tsr_row_mail_request_bytes(mail, rank, &bytes) || bytes > INT64_MAX - (int64_t)TSR_ALIGNMENT ||
             !tsr_add_sizes(total, (int64_t)tsr_round_up((size_t)bytes, TSR_ALIGNMENT), &total)))
            return tsr_status_set(TSR_ERROR_MEMORY, "%s: the messages have more than 2^63 - 1 bytes", mail->call->name);
    TSR_TRY(tsr_row_room_take(mail->call->rooms, TSR_ROOM_SHOWN, (size_t)total, 1, &memory));
    int64_t *const begins = memory;
    total = (int64_t)tsr_round_up((size_t)near->count * sizeof(int64_t), TSR_ALIGNMENT);
    for (int64_t rank = 0; rank < mail->ranks; rank++)
        if (tsr_row_mail_is_near(mail, rank) && tsr_row_mail_request_bytes(mail, rank, &bytes)) {
            begins[tsr_group_position(near, rank)] = total;
            total += (int64_t)tsr_round_up((size_t)bytes, TSR_ALIGNMENT);
        }
    *hidden += hides(mail, memory, (size_t)total);
    return TSR_OK;
}

tsr_status tsr_mail_near_offer(tsr_row_mail *mail, uint64_t *hidden)
{
    const tsr_row_call *const call = mail->call;
    *hidden = 0;
    mail->near = call->batch ? NULL : call->mates;
    if (!mail->near)
        return TSR_OK;
    if (!tsr_comm_shares_some(call->rooms->sharing) || call->count > TSR_CALL_BUFFER_BYTES / sizeof(shown)) {
        *hidden = 1;
        return TSR_OK;
    }
    if (!call->gathers)
        return lay_requests(mail, hidden);
    for (size_t i = 0; i < call->count; i++)
        *hidden += hides(mail, call->requests[i].local, call->requests[i].local_bytes);
    return TSR_OK;
}

char *tsr_mail_near_request(const tsr_row_mail *mail, int64_t rank)
{
    char *const memory = mail->call->rooms->memory[TSR_ROOM_SHOWN];
    const int64_t *const begins = (const void *)memory;
    return memory + begins[tsr_group_position(mail->near, rank)];
}

/* Fills this rank's buffer. */
static void show(const tsr_row_mail *mail, shown *to)
{
    const tsr_row_call *const call = mail->call;
    if (!call->gathers)
        *to = (shown){call->rooms->memory[TSR_ROOM_SHOWN], 0};
    for (size_t i = 0; i < call->count && call->gathers; i++)
        to[i] = (shown){call->requests[i].local, call->requests[i].local_stride};
}

tsr_status tsr_mail_near_begin(const tsr_row_mail *mail)
{
    if (!mail->near)
        return TSR_OK;
    tsr_comm *const comm = mail->near->comm;
    const tsr_call mine = {.fingerprint = mail->call->fingerprint, .reaches = true, .shows = true};
    shown *const to = tsr_call_buffer(comm);
    if (to)
        show(mail, to);
    const tsr_status status = tsr_call_begin(comm, &mine, tsr_row_call_describe, mail->call);
    if (status != TSR_OK)
        tsr_call_forget(comm);
    return status;
}

tsr_status tsr_mail_near_end(const tsr_row_mail *mail, tsr_status local)
{
    if (!mail->near)
        return local;
    const tsr_status status = tsr_call_end(mail->near->comm, local);
    tsr_call_forget(mail->near->comm);
    return status;
}

static const shown *shown_by(const tsr_row_mail *mail, int64_t rank)
{
    return tsr_call_buffer_of(mail->near->comm, tsr_group_position(mail->near, rank));
}

char *tsr_mail_near_asked(const tsr_row_mail *mail, int64_t rank)
{
    const char *const memory = shown_by(mail, rank)->memory;
    const int64_t *const begins = (const void *)memory;
    return (char *)memory + begins[tsr_comm_rank(mail->near->comm)];
}

void tsr_mail_near_read(const tsr_row_mail *mail, int64_t rank, int64_t i)
{
    const tsr_row_request *const request = &mail->call->requests[i];
    const tsr_row_numbers numbers = request->table->ranks[rank];
    const shown theirs = shown_by(mail, rank)[i];
    const tsr_row_columns *const columns = &request->table->parts[numbers.columns];
    for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1] && columns->width > 0; k++)
        tsr_row_scatter(request->table, columns, request->data + (size_t)request->positions[k] * request->stride,
                        theirs.memory + (size_t)request->locals[k] * theirs.stride);
}
