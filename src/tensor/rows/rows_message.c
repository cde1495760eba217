/*
 * Ranks agree that all can go on, and tell one another how many rows concern each. Then all know
 * the bytes of every message, take the memory, and agree once more; after that nothing can fail but
 * the engine. An update then takes one exchange, of local rows and of what changes them; a gather
 * two, of local rows and of their contents. All tables share them.
 *
 * Contents of tables on a device are sent from its memory and received there: so an update takes
 * two exchanges, too. Devices may fail, so ranks agree before contents are sent, and at the end.
 */
#include "tensor/rows/rows_message.h"

#include "base/checked.h"
#include "comm/collectives/parts.h"
#include "comm/core/agree.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The call, with what this rank sends and receives. Arrays of counts have an element for each
 * position of the group and table: position * tables + table. */
typedef struct mail {
    const tsr_row_call *call;
    tsr_comm *comm;
    int64_t ranks, tables;
    int64_t *sent, *received;             /* rows that each rank names to another */
    int64_t *sent_bytes, *received_bytes; /* of the current exchange; one a rank */
    tsr_row_unique *unique;               /* rows that are named once; one a table */
    tsr_row_segment *packed;              /* of an update: a row's elements in messages; one a table */
} mail;

static int64_t *counts_of(const mail *m, int64_t *counts, int64_t rank)
{
    return counts + rank * m->tables;
}

static tsr_status take_counts(mail *m)
{
    const size_t counts = (size_t)(m->ranks * m->tables), ranks = (size_t)m->ranks;
    void *memory;
    TSR_TRY(tsr_row_room_take(m->call->rooms, TSR_ROOM_COUNTS, 1,
                              (2 * counts + 2 * ranks) * sizeof(int64_t) +
                                  (size_t)m->tables * (sizeof(tsr_row_unique) + sizeof(tsr_row_segment)),
                              &memory));
    m->sent = memory;
    m->received = m->sent + counts;
    m->sent_bytes = m->received + counts;
    m->received_bytes = m->sent_bytes + ranks;
    m->unique = (tsr_row_unique *)(m->received_bytes + ranks);
    m->packed = (tsr_row_segment *)(m->unique + m->tables);
    return TSR_OK;
}

/* True if equal rows of a rank for table `i` become one before they are sent. */
static bool combines(const mail *m, int64_t i)
{
    return !m->call->gathers && tsr_row_op_groups(m->call->op, m->call->requests[i].table->layout->dtype);
}

/* True if the rows that a rank names for table `i` are those of m->unique. */
static bool unites(const mail *m, int64_t i)
{
    return m->call->gathers || combines(m, i);
}

/* The rows that a rank brings for its table `i`, by row part. */
static const int64_t *starts_of(const mail *m, int64_t i)
{
    return unites(m, i) ? m->unique[i].starts : m->call->requests[i].starts;
}

static const int64_t *locals_of(const mail *m, int64_t i)
{
    return unites(m, i) ? m->unique[i].locals : m->call->requests[i].locals;
}

/* True if this rank names rows of table `i` to `rank`: all replicas change theirs, but a gather
 * reads one, the own. */
static bool concerns(const mail *m, int64_t rank, int64_t i)
{
    const tsr_row_table *const table = m->call->requests[i].table;
    return !m->call->gathers || table->ranks[rank].replica == table->replicas.own;
}

static void count_rows(const mail *m)
{
    for (int64_t rank = 0; rank < m->ranks; rank++)
        for (int64_t i = 0; i < m->tables; i++) {
            const int64_t *const starts = starts_of(m, i) + m->call->requests[i].table->ranks[rank].rows;
            counts_of(m, m->sent, rank)[i] = concerns(m, rank, i) ? starts[1] - starts[0] : 0;
        }
}

static tsr_status sort_requests(const mail *m)
{
    for (int64_t i = 0; i < m->tables; i++) {
        tsr_row_request *const request = &m->call->requests[i];
        TSR_TRY(tsr_row_request_sort(request));
        if (unites(m, i))
            TSR_TRY(tsr_row_request_find_unique(request, &m->unique[i]));
        else if (m->call->op == TSR_ROWS_ASSIGN)
            TSR_TRY(tsr_row_request_keep_last(request));
    }
    return TSR_OK;
}

/* Sorts the requests, and counts what they send. Does not communicate. */
static tsr_status begin(mail *m)
{
    TSR_TRY(take_counts(m));
    TSR_TRY(sort_requests(m));
    count_rows(m);
    return TSR_OK;
}

static tsr_status agree(const mail *m, tsr_status local)
{
    return tsr_comm_agree(m->comm, m->call->fingerprint, local, tsr_row_call_describe, m->call);
}

static tsr_status exchange_counts(const mail *m)
{
    for (int64_t rank = 0; rank < m->ranks; rank++)
        m->sent_bytes[rank] = m->received_bytes[rank] = m->tables * (int64_t)sizeof(int64_t);
    return tsr_parts_exchange(m->comm, m->sent, m->sent_bytes, m->received, m->received_bytes, tsr_device_host());
}

/* Bytes of `count` rows in a message; a message's parts begin where any dtype may. False: they
 * overflow. */
static bool bytes_of(int64_t count, int64_t row_bytes, int64_t *out)
{
    if (!tsr_multiply(count, row_bytes, out) || *out > INT64_MAX - (int64_t)TSR_ALIGNMENT)
        return false;
    *out = (int64_t)tsr_round_up((size_t)*out, TSR_ALIGNMENT);
    return true;
}

/* True if messages hold whole rows, also where `rank` has a part of their columns. */
static bool sends_whole(const mail *m)
{
    return m->call->step && m->call->step->needs_whole;
}

/* Bytes of a row in messages to or from `rank`: of its column part. */
static int64_t row_bytes_of(const mail *m, int64_t rank, int64_t i)
{
    const tsr_row_table *const table = m->call->requests[i].table;
    const int64_t width = sends_whole(m) ? table->width : table->parts[table->ranks[rank].columns].width;
    return width * (int64_t)table->element_bytes;
}

/* What messages hold of the rows that they name. */
typedef enum content { NAMES, ROWS, NAMES_AND_ROWS } content;

/* Bytes of one rank's message; `owner`: the rank whose column part its rows have. */
static bool message_bytes(const mail *m, content holds, const int64_t *counts, int64_t owner, int64_t *out)
{
    *out = 0;
    for (int64_t i = 0; i < m->tables; i++) {
        int64_t ids = 0, rows = 0;
        if (holds != ROWS && !bytes_of(counts[i], sizeof(int64_t), &ids))
            return false;
        if (holds != NAMES && !bytes_of(counts[i], row_bytes_of(m, owner, i), &rows))
            return false;
        if (!tsr_add_sizes(*out, ids, out) || !tsr_add_sizes(*out, rows, out))
            return false;
    }
    return true;
}

/* An exchange. `answers`: messages go from owners to the ranks that named rows, else the other
 * way. */
typedef struct delivery {
    content holds;
    bool answers;
    tsr_row_use from, to; /* the rooms of what is sent and received */
} delivery;

static const delivery names = {NAMES, false, TSR_ROOM_SENT, TSR_ROOM_ASKED},
                      answers = {ROWS, true, TSR_ROOM_ANSWERED, TSR_ROOM_RECEIVED},
                      changes = {NAMES_AND_ROWS, false, TSR_ROOM_SENT, TSR_ROOM_RECEIVED},
                      device_answers = {ROWS, true, TSR_ROOM_DEVICE_SENT, TSR_ROOM_DEVICE_RECEIVED},
                      device_changes = {ROWS, false, TSR_ROOM_DEVICE_SENT, TSR_ROOM_DEVICE_RECEIVED};

static const delivery *answers_of(const mail *m)
{
    return m->call->batch ? &device_answers : &answers;
}

/* Sets the bytes of the next exchange, and takes memory for it. */
static tsr_status prepare_exchange(const mail *m, const delivery *d)
{
    const int64_t own = tsr_comm_rank(m->comm);
    int64_t sent = 0, received = 0;
    void *memory;
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        const bool fits = message_bytes(m, d->holds, counts_of(m, d->answers ? m->received : m->sent, rank),
                                        d->answers ? own : rank, &m->sent_bytes[rank]) &&
                          message_bytes(m, d->holds, counts_of(m, d->answers ? m->sent : m->received, rank),
                                        d->answers ? rank : own, &m->received_bytes[rank]) &&
                          tsr_add_sizes(sent, m->sent_bytes[rank], &sent) &&
                          tsr_add_sizes(received, m->received_bytes[rank], &received);
        if (!fits)
            return tsr_status_set(TSR_ERROR_MEMORY, "%s: the messages have more than 2^63 - 1 bytes", m->call->name);
    }
    TSR_TRY(tsr_row_room_take(m->call->rooms, d->from, (size_t)sent, 1, &memory));
    return tsr_row_room_take(m->call->rooms, d->to, (size_t)received, 1, &memory);
}

static void *room(const mail *m, tsr_row_use use)
{
    return m->call->rooms->memory[use];
}

/* After prepare_exchange() of this delivery. */
static tsr_status exchange(const mail *m, const delivery *d)
{
    return tsr_parts_exchange(m->comm, room(m, d->from), m->sent_bytes, room(m, d->to), m->received_bytes,
                              d->from == TSR_ROOM_DEVICE_SENT ? m->call->batch->device : tsr_device_host());
}

/* The rest of a message: `count` rows lie at the returned place. */
static char *next_rows(char **at, int64_t count, int64_t row_bytes)
{
    char *const rows = *at;
    *at += tsr_round_up((size_t)(count * row_bytes), TSR_ALIGNMENT);
    return rows;
}

static void write_names(const mail *m, int64_t rank, int64_t i, char **at)
{
    const int64_t count = counts_of(m, m->sent, rank)[i];
    char *const to = next_rows(at, count, sizeof(int64_t));
    if (count > 0)
        memcpy(to, locals_of(m, i) + starts_of(m, i)[m->call->requests[i].table->ranks[rank].rows],
               (size_t)count * sizeof(int64_t));
}

/* Where a row that a rank brings lies: row `k` of the sorted ones. */
static const char *brought(const tsr_row_request *request, int64_t k)
{
    return request->data + (size_t)request->positions[k] * request->stride;
}

/* What rows for table `i` become in a message of `bytes` bytes a row, in the column part of
 * `numbers`. */
static tsr_row_apply packing(const mail *m, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_table *const table = m->call->requests[i].table;
    const tsr_row_columns *const columns = &table->parts[numbers.columns];
    tsr_row_apply apply = m->call->applies[i];
    apply.local = to;
    apply.local_stride = (size_t)bytes;
    apply.is_new = true;
    apply.segments = columns->count > 0 ? table->segments + columns->first : NULL;
    apply.segment_count = columns->count;
    return apply;
}

/* Combines equal rows of table `i` for the ranks of `numbers` in a message. */
static tsr_status write_combined(const mail *m, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const tsr_row_apply apply = packing(m, i, numbers, to, bytes);
    const int64_t *const indices = m->unique[i].indices;
    int64_t written = 0;
    for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1]; k++)
        if (indices[k] == written)
            tsr_row_collect(request->table, &request->table->parts[numbers.columns], to + written++ * bytes,
                            brought(request, k));
        else
            TSR_TRY(tsr_row_apply_one(&apply, to + indices[k] * bytes, brought(request, k)));
    return TSR_OK;
}

/* The same on a device. */
static tsr_status combine_on_device(const mail *m, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const int64_t begin = request->starts[numbers.rows];
    tsr_row_source source = {.count = request->starts[numbers.rows + 1] - begin,
                             .locals = m->unique[i].indices + begin,
                             .positions = request->positions + begin,
                             .data = request->data,
                             .stride = request->stride};
    tsr_row_apply apply = packing(m, i, numbers, to, bytes);
    apply.sources = &source;
    apply.source_count = 1;
    TSR_TRY(tsr_row_batch_finish(m->call->batch));
    TSR_TRY(tsr_row_apply_prepare(&apply));
    return tsr_row_apply_run(&apply);
}

/* Copies rows to a message on a device. */
static tsr_status pack_on_device(const mail *m, int64_t i, tsr_row_numbers numbers, char *to, int64_t bytes)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const tsr_row_table *const table = request->table;
    const tsr_row_columns *const columns = &table->parts[numbers.columns];
    const int64_t begin = request->starts[numbers.rows], end = request->starts[numbers.rows + 1];
    for (size_t s = 0; s < columns->count; s++) {
        const tsr_row_segment *const segment = &table->segments[columns->first + s];
        for (int64_t k = begin; k < end; k++)
            TSR_TRY(tsr_row_batch_copy(m->call->batch, table->layout->dtype, segment->length,
                                       to + (k - begin) * bytes + (size_t)segment->local * table->element_bytes,
                                       brought(request, k) + (size_t)segment->whole * table->element_bytes));
    }
    return TSR_OK;
}

/* Writes the rows that change those of `rank`. */
static tsr_status write_changes(const mail *m, int64_t rank, int64_t i, char **at)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const tsr_row_numbers numbers = request->table->ranks[rank];
    const int64_t count = counts_of(m, m->sent, rank)[i], bytes = row_bytes_of(m, rank, i);
    const int64_t begin = request->starts[numbers.rows];
    char *const to = next_rows(at, count, bytes);
    if (count == 0 || bytes == 0)
        return TSR_OK;
    if (m->call->batch)
        return combines(m, i) ? combine_on_device(m, i, numbers, to, bytes) : pack_on_device(m, i, numbers, to, bytes);
    if (combines(m, i))
        return write_combined(m, i, numbers, to, bytes);
    for (int64_t k = 0; k < count; k++)
        if (sends_whole(m))
            memcpy(to + k * bytes, brought(request, begin + k), (size_t)bytes);
        else
            tsr_row_collect(request->table, &request->table->parts[numbers.columns], to + k * bytes,
                            brought(request, begin + k));
    return TSR_OK;
}

static tsr_status write_messages(const mail *m, content holds, char *at)
{
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        for (int64_t i = 0; i < m->tables && holds != ROWS; i++)
            write_names(m, rank, i, &at);
        for (int64_t i = 0; i < m->tables && holds != NAMES; i++)
            TSR_TRY(write_changes(m, rank, i, &at));
    }
    return TSR_OK;
}

/* Finds where the rows of an update will lie in the messages of all ranks. On a device they lie
 * apart from their names. */
static void point_at_changes(const mail *m)
{
    const int64_t own = tsr_comm_rank(m->comm);
    char *at = room(m, m->call->batch ? TSR_ROOM_ASKED : TSR_ROOM_RECEIVED), *on_device = NULL;
    char **const rows = m->call->batch ? &on_device : &at;
    if (m->call->batch)
        on_device = room(m, TSR_ROOM_DEVICE_RECEIVED);
    for (int64_t rank = 0; rank < m->ranks; rank++) {
        const int64_t *const counts = counts_of(m, m->received, rank);
        const int turn = m->call->requests[0].table->turns[rank];
        for (int64_t i = 0; i < m->tables; i++)
            m->call->applies[i].sources[turn] = (tsr_row_source){
                .count = counts[i], .locals = (const void *)next_rows(&at, counts[i], sizeof(int64_t))};
        for (int64_t i = 0; i < m->tables; i++) {
            m->call->applies[i].sources[turn].stride = (size_t)row_bytes_of(m, own, i);
            m->call->applies[i].sources[turn].data = next_rows(rows, counts[i], row_bytes_of(m, own, i));
        }
    }
}

/* The elements that this rank has of a row lie together in messages. */
static void expect_packed(const mail *m, int64_t i, tsr_row_segment *packed)
{
    *packed = (tsr_row_segment){0, 0, tsr_row_own_columns(m->call->requests[i].table)->width};
    m->call->applies[i].segments = packed;
    m->call->applies[i].segment_count = packed->length > 0;
}

/* Takes memory for the messages of an update. The names come last, as they are sent first. */
static tsr_status prepare_changes(const mail *m)
{
    if (!m->call->batch)
        return prepare_exchange(m, &changes);
    TSR_TRY(prepare_exchange(m, &device_changes));
    for (int64_t i = 0; i < m->tables; i++)
        TSR_TRY(tsr_row_batch_reserve(m->call->batch, m->call->requests[i].count, 0));
    return prepare_exchange(m, &names);
}

static tsr_status write_update(const mail *m)
{
    if (!m->call->batch)
        return write_messages(m, NAMES_AND_ROWS, room(m, TSR_ROOM_SENT));
    TSR_TRY(write_messages(m, NAMES, room(m, TSR_ROOM_SENT)));
    TSR_TRY(write_messages(m, ROWS, room(m, TSR_ROOM_DEVICE_SENT)));
    return tsr_row_batch_finish(m->call->batch);
}

static tsr_status prepare_update(const mail *m)
{
    TSR_TRY(prepare_changes(m));
    for (int64_t i = 0; i < m->tables; i++) {
        TSR_TRY(tsr_row_call_begin_apply(m->call, (size_t)i));
        if (!sends_whole(m))
            expect_packed(m, i, &m->packed[i]);
    }
    point_at_changes(m);
    for (int64_t i = 0; i < m->tables; i++)
        TSR_TRY(tsr_row_apply_reserve(&m->call->applies[i]));
    return write_update(m);
}

static tsr_status exchange_changes(const mail *m)
{
    if (!m->call->batch)
        return exchange(m, &changes);
    TSR_TRY(exchange(m, &names));
    TSR_TRY(prepare_exchange(m, &device_changes));
    return exchange(m, &device_changes);
}

static tsr_status apply_changes(const mail *m)
{
    for (int64_t i = 0; i < m->tables; i++) {
        TSR_TRY(tsr_row_apply_prepare(&m->call->applies[i]));
        TSR_TRY(tsr_row_apply_run(&m->call->applies[i]));
    }
    return TSR_OK;
}

/* The last agreement of ranks, on what their devices did; the host does not fail. */
static tsr_status conclude(const mail *m, tsr_status local)
{
    return m->call->batch ? agree(m, local) : local;
}

static tsr_status update(const mail *m, tsr_status local)
{
    TSR_TRY(agree(m, local == TSR_OK ? prepare_update(m) : local));
    TSR_TRY(exchange_changes(m));
    return conclude(m, apply_changes(m));
}

/* Copies `count` rows of the table to a message on a device. */
static tsr_status answer_on_device(const mail *m, int64_t i, const int64_t *locals, int64_t count, char *to)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const int64_t width = tsr_row_own_columns(request->table)->width;
    const size_t bytes = (size_t)width * request->table->element_bytes;
    for (int64_t k = 0; k < count; k++)
        TSR_TRY(tsr_row_batch_copy(m->call->batch, request->table->layout->dtype, width, to + (size_t)k * bytes,
                                   request->local + (size_t)locals[k] * request->local_stride));
    return TSR_OK;
}

/* Writes the contents of the rows that peers have named. */
static tsr_status write_answers(const mail *m)
{
    const int64_t own = tsr_comm_rank(m->comm);
    char *asked = room(m, TSR_ROOM_ASKED), *at = room(m, answers_of(m)->from);
    for (int64_t rank = 0; rank < m->ranks; rank++)
        for (int64_t i = 0; i < m->tables; i++) {
            const tsr_row_request *const request = &m->call->requests[i];
            const int64_t count = counts_of(m, m->received, rank)[i], bytes = row_bytes_of(m, own, i);
            const int64_t *const locals = (const void *)next_rows(&asked, count, sizeof(int64_t));
            char *const to = next_rows(&at, count, bytes);
            if (m->call->batch)
                TSR_TRY(answer_on_device(m, i, locals, count, to));
            for (int64_t k = 0; k < count && bytes > 0 && !m->call->batch; k++)
                memcpy(to + k * bytes, request->local + (size_t)locals[k] * request->local_stride, (size_t)bytes);
        }
    return m->call->batch ? tsr_row_batch_finish(m->call->batch) : TSR_OK;
}

/* Copies the rows that `rank` has sent for table `i` to all ids that name them. */
static void read_answer(const mail *m, int64_t rank, int64_t i, const char *rows)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const tsr_row_numbers numbers = request->table->ranks[rank];
    const int64_t bytes = row_bytes_of(m, rank, i);
    for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1] && bytes > 0; k++)
        tsr_row_scatter(request->table, &request->table->parts[numbers.columns],
                        request->data + (size_t)request->positions[k] * request->stride,
                        rows + m->unique[i].indices[k] * bytes);
}

/* read_answer() on a device. */
static tsr_status read_on_device(const mail *m, int64_t rank, int64_t i, const char *rows)
{
    const tsr_row_request *const request = &m->call->requests[i];
    const tsr_row_table *const table = request->table;
    const tsr_row_numbers numbers = table->ranks[rank];
    const tsr_row_columns *const columns = &table->parts[numbers.columns];
    const int64_t bytes = row_bytes_of(m, rank, i);
    for (size_t s = 0; s < columns->count; s++) {
        const tsr_row_segment *const segment = &table->segments[columns->first + s];
        for (int64_t k = request->starts[numbers.rows]; k < request->starts[numbers.rows + 1]; k++)
            TSR_TRY(tsr_row_batch_copy(m->call->batch, table->layout->dtype, segment->length,
                                       (char *)brought(request, k) + (size_t)segment->whole * table->element_bytes,
                                       rows + m->unique[i].indices[k] * bytes +
                                           (size_t)segment->local * table->element_bytes));
    }
    return TSR_OK;
}

static tsr_status read_answers(const mail *m)
{
    char *at = room(m, answers_of(m)->to);
    for (int64_t rank = 0; rank < m->ranks; rank++)
        for (int64_t i = 0; i < m->tables; i++) {
            const char *const rows = next_rows(&at, counts_of(m, m->sent, rank)[i], row_bytes_of(m, rank, i));
            if (!concerns(m, rank, i))
                continue;
            if (m->call->batch)
                TSR_TRY(read_on_device(m, rank, i, rows));
            else
                read_answer(m, rank, i, rows);
        }
    return m->call->batch ? tsr_row_batch_finish(m->call->batch) : TSR_OK;
}

/* Takes the memory of lists of rows, which are as long as the longest of those that are listed
 * together. */
static tsr_status reserve_lists(const mail *m)
{
    for (int64_t i = 0; i < m->tables && m->call->batch; i++) {
        TSR_TRY(tsr_row_batch_reserve(m->call->batch, m->call->requests[i].count, 0));
        for (int64_t rank = 0; rank < m->ranks; rank++)
            TSR_TRY(tsr_row_batch_reserve(m->call->batch, counts_of(m, m->received, rank)[i], 0));
    }
    return TSR_OK;
}

static tsr_status prepare_gather(const mail *m)
{
    TSR_TRY(prepare_exchange(m, answers_of(m)));
    TSR_TRY(reserve_lists(m));
    TSR_TRY(prepare_exchange(m, &names));
    return write_messages(m, NAMES, room(m, TSR_ROOM_SENT));
}

static tsr_status gather(const mail *m, tsr_status local)
{
    TSR_TRY(agree(m, local == TSR_OK ? prepare_gather(m) : local));
    TSR_TRY(exchange(m, &names));
    TSR_TRY(conclude(m, write_answers(m)));
    TSR_TRY(prepare_exchange(m, answers_of(m)));
    TSR_TRY(exchange(m, answers_of(m)));
    return conclude(m, read_answers(m));
}

tsr_status tsr_rows_run_by_messages(const tsr_row_call *call, tsr_status local)
{
    mail m = {.call = call, .comm = call->group->comm, .ranks = call->group->count, .tables = (int64_t)call->count};
    if (local == TSR_OK)
        local = begin(&m);
    TSR_TRY(agree(&m, local));
    TSR_TRY(exchange_counts(&m));
    const tsr_status moved = call->batch ? tsr_parts_probe(m.comm, call->batch->device) : TSR_OK;
    return call->gathers ? gather(&m, moved) : update(&m, moved);
}
