/*
 * Ranks write their requests, agree that all can go on, and exchange the beginnings of requests,
 * with all counts and often all rows that are named. Then all know the bytes of every message, take
 * the memory, and agree once more; after that nothing can fail but the engine. The rest of requests
 * follows, if a rank has any. An update then has all that it needs; a gather takes one exchange
 * more, of contents. All tables share them.
 *
 * Of ranks on several nodes, those of one node read one another's memory instead, in a call of
 * theirs, as soon as nothing can fail.
 *
 * Contents of tables on a device are sent from its memory and received there: so an update has an
 * exchange of them, too. Devices may fail, so ranks agree before contents are sent, and at the end.
 */
#include "tensor/rows/rows_message.h"

#include "base/checked.h"
#include "comm/core/agree.h"
#include "tensor/rows/messages/mail_device.h"
#include "tensor/rows/messages/mail_host.h"
#include "tensor/rows/messages/mail_near.h"

#include <tessera/sys/status.h>

static tsr_status agree(const tsr_row_mail *m, tsr_status local)
{
    return tsr_comm_agree(m->comm, m->call->fingerprint, local, tsr_row_call_describe, m->call);
}

/* Writes the rows that change those of `rank`. */
static tsr_status write_changes(const tsr_row_mail *m, int64_t rank, char **at)
{
    for (int64_t i = 0; i < m->tables; i++) {
        const int64_t count = tsr_row_mail_counts(m, m->sent, rank)[i], bytes = tsr_row_mail_row_bytes(m, rank, i);
        char *const to = tsr_row_mail_next(at, count, bytes);
        if (count > 0 && bytes > 0)
            TSR_TRY(m->call->batch ? tsr_mail_device_pack(m, rank, i, to) : tsr_mail_host_pack(m, rank, i, to));
    }
    return TSR_OK;
}

static tsr_status write_request(const tsr_row_mail *m, int64_t rank)
{
    const bool near = tsr_row_mail_is_near(m, rank);
    if (near)
        tsr_row_mail_write_counts(m, rank);
    if (near && m->call->gathers)
        return TSR_OK;
    char *rows = tsr_row_mail_write_names(m, rank, near ? tsr_mail_near_request(m, rank) : NULL);
    return m->call->gathers || m->call->batch ? TSR_OK : write_changes(m, rank, &rows);
}

/* Takes memory. Does not communicate. */
static tsr_status begin(const tsr_row_call *call, tsr_row_mail *m, uint64_t *hidden)
{
    TSR_TRY(tsr_row_mail_open(m, call));
    for (size_t i = 0; i < call->count && !call->gathers; i++)
        TSR_TRY(tsr_row_call_begin_apply(call, i));
    TSR_TRY(tsr_row_mail_sort(m));
    return tsr_mail_near_offer(m, hidden);
}

/* Agrees, writes all requests, and exchanges their beginnings. If memory is hidden from a rank
 * near, nodes make no difference to this call. */
static tsr_status exchange_beginnings(tsr_row_mail *m, tsr_status local, uint64_t hidden)
{
    TSR_TRY(tsr_comm_agree_balance(m->comm, m->call->fingerprint, local, &hidden, tsr_row_call_describe, m->call));
    if (hidden > 0)
        m->near = NULL;
    if (m->near)
        TSR_TRY(tsr_row_mail_count(m));
    for (int64_t rank = 0; rank < m->ranks; rank++)
        TSR_TRY(write_request(m, rank));
    return tsr_row_mail_exchange_beginnings(m);
}

/* Agrees, and exchanges the rest of requests if a rank has any. */
static tsr_status exchange_rest(const tsr_row_mail *m, tsr_status local)
{
    uint64_t ranks = local == TSR_OK && tsr_row_mail_has_rest(m);
    TSR_TRY(tsr_comm_agree_balance(m->comm, m->call->fingerprint, local, &ranks, tsr_row_call_describe, m->call));
    return ranks > 0 ? tsr_row_mail_exchange_rest(m) : TSR_OK;
}

/* Counts the rows of an update. */
static void count_changes(const tsr_row_mail *m)
{
    for (int64_t rank = 0; rank < m->ranks; rank++)
        for (int64_t i = 0; i < m->tables; i++)
            m->call->applies[i].sources[m->call->requests[0].table->turns[rank]] =
                (tsr_row_source){.count = tsr_row_mail_counts(m, m->received, rank)[i]};
}

/* Finds where the rows of an update lie in the requests of all ranks. On a device they lie apart
 * from their names. */
static void point_at_changes(const tsr_row_mail *m)
{
    const int64_t own = tsr_comm_rank(m->comm);
    char *on_device = m->call->batch ? tsr_row_mail_contents_received(m) : NULL;
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        const int64_t *const counts = tsr_row_mail_counts(m, m->received, rank);
        const int turn = m->call->requests[0].table->turns[rank];
        char *const request =
            tsr_row_mail_is_near(m, rank) ? tsr_mail_near_asked(m, rank) : tsr_row_mail_asked(m, rank);
        char *at;
        const int64_t *names = tsr_row_mail_names(m, rank, request, &at);
        for (int64_t i = 0; i < m->tables; i++) {
            const int64_t bytes = tsr_row_mail_row_bytes(m, own, i);
            m->call->applies[i].sources[turn] =
                (tsr_row_source){.count = counts[i],
                                 .locals = names,
                                 .data = tsr_row_mail_next(m->call->batch ? &on_device : &at, counts[i], bytes),
                                 .stride = (size_t)bytes};
            names += counts[i];
        }
    }
}

/* The elements that this rank has of a row lie together in messages. */
static void expect_packed(const tsr_row_mail *m, int64_t i, tsr_row_segment *packed)
{
    *packed = (tsr_row_segment){0, 0, tsr_row_own_columns(m->call->requests[i].table)->width};
    m->call->applies[i].segments = packed;
    m->call->applies[i].segment_count = packed->length > 0;
}

/* Writes what changes tables on a device. */
static tsr_status write_contents(const tsr_row_mail *m)
{
    char *at = tsr_row_mail_contents_sent(m);
    for (int64_t rank = 0; rank < m->ranks; rank++)
        TSR_TRY(write_changes(m, rank, &at));
    return tsr_row_batch_finish(m->call->batch);
}

static tsr_status prepare_update(tsr_row_mail *m)
{
    TSR_TRY(tsr_row_mail_expect(m));
    if (m->call->batch)
        TSR_TRY(tsr_row_mail_size_contents(m));
    TSR_TRY(tsr_mail_device_reserve(m));
    for (int64_t i = 0; i < m->tables && !tsr_row_mail_sends_whole(m); i++)
        expect_packed(m, i, &m->packed[i]);
    count_changes(m);
    for (int64_t i = 0; i < m->tables; i++)
        TSR_TRY(tsr_row_apply_reserve(&m->call->applies[i]));
    return m->call->batch ? write_contents(m) : TSR_OK;
}

static tsr_status apply_changes(const tsr_row_mail *m)
{
    point_at_changes(m);
    for (int64_t i = 0; i < m->tables; i++) {
        TSR_TRY(tsr_row_apply_prepare(&m->call->applies[i]));
        TSR_TRY(tsr_row_apply_run(&m->call->applies[i]));
    }
    return TSR_OK;
}

/* The last agreement of ranks, on what their devices did; the host does not fail. */
static tsr_status conclude(const tsr_row_mail *m, tsr_status local)
{
    return m->call->batch ? agree(m, local) : local;
}

static tsr_status update(tsr_row_mail *m, tsr_status local)
{
    TSR_TRY(exchange_rest(m, local == TSR_OK ? prepare_update(m) : local));
    if (m->call->batch)
        TSR_TRY(tsr_row_mail_exchange_contents(m));
    TSR_TRY(tsr_mail_near_begin(m));
    return conclude(m, tsr_mail_near_end(m, apply_changes(m)));
}

/* Writes the contents of the rows that peers have named. */
static tsr_status write_answers(const tsr_row_mail *m)
{
    const int64_t own = tsr_comm_rank(m->comm);
    char *at = tsr_row_mail_contents_sent(m);
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        if (tsr_row_mail_is_near(m, rank))
            continue;
        char *behind;
        const int64_t *locals = tsr_row_mail_names(m, rank, tsr_row_mail_asked(m, rank), &behind);
        for (int64_t i = 0; i < m->tables; i++) {
            const int64_t count = tsr_row_mail_counts(m, m->received, rank)[i];
            char *const to = tsr_row_mail_next(&at, count, tsr_row_mail_row_bytes(m, own, i));
            if (m->call->batch)
                TSR_TRY(tsr_mail_device_answer(m, i, locals, count, to));
            else
                tsr_mail_host_answer(m, i, locals, count, to);
            locals += count;
        }
    }
    return m->call->batch ? tsr_row_batch_finish(m->call->batch) : TSR_OK;
}

static tsr_status read_answers(const tsr_row_mail *m)
{
    char *at = tsr_row_mail_contents_received(m);
    for (int64_t rank = 0; rank < m->ranks; rank++)
        for (int64_t i = 0; i < m->tables; i++) {
            const char *const rows =
                tsr_row_mail_next(&at, tsr_row_mail_counts(m, m->sent, rank)[i], tsr_row_mail_row_bytes(m, rank, i));
            if (!tsr_row_mail_concerns(m, rank, i) || tsr_row_mail_is_near(m, rank))
                continue;
            if (m->call->batch)
                TSR_TRY(tsr_mail_device_read(m, rank, i, rows));
            else
                tsr_mail_host_read(m, rank, i, rows);
        }
    return m->call->batch ? tsr_row_batch_finish(m->call->batch) : TSR_OK;
}

static void read_near(const tsr_row_mail *m)
{
    for (int64_t rank = 0; rank < m->ranks; rank++)
        for (int64_t i = 0; i < m->tables; i++)
            if (tsr_row_mail_is_near(m, rank) && tsr_row_mail_concerns(m, rank, i))
                tsr_mail_near_read(m, rank, i);
}

static tsr_status prepare_gather(tsr_row_mail *m)
{
    TSR_TRY(tsr_row_mail_expect(m));
    TSR_TRY(tsr_row_mail_size_contents(m));
    return tsr_mail_device_reserve(m);
}

static tsr_status gather(tsr_row_mail *m, tsr_status local)
{
    TSR_TRY(exchange_rest(m, local == TSR_OK ? prepare_gather(m) : local));
    TSR_TRY(conclude(m, write_answers(m)));
    TSR_TRY(tsr_row_mail_exchange_contents(m));
    TSR_TRY(tsr_mail_near_begin(m));
    read_near(m);
    TSR_TRY(tsr_mail_near_end(m, TSR_OK));
    return conclude(m, read_answers(m));
}

tsr_status tsr_rows_run_by_messages(const tsr_row_call *call, tsr_status local)
{
    tsr_row_mail m = {.call = call, .comm = call->group->comm};
    uint64_t hidden = 0;
    if (local == TSR_OK)
        local = begin(call, &m, &hidden);
    TSR_TRY(exchange_beginnings(&m, local, hidden));
    const tsr_status moved = call->batch ? tsr_parts_probe(m.comm, call->batch->device) : TSR_OK;
    return call->gathers ? gather(&m, moved) : update(&m, moved);
}
