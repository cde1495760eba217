#include "tensor/rows/rows_direct.h"

#include "base/checked.h"
#include "comm/core/call.h"
#include "comm/core/traits.h"
#include "tensor/rows/row_ids.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Bytes of a row that are fetched before they are copied. */
#define FETCHED_BYTES 512

/* How many rows are fetched ahead of the row that is copied. */
#define FETCHED_ROWS 16

/* What peers read of a rank, for one table. */
typedef struct shown {
    const char *shard;
    size_t shard_stride; /* bytes from row to row */
    /* of an update; see tsr_row_request */
    const int64_t *starts, *locals;
    const int64_t *positions; /* NULL: rows lie in the order of `locals` */
    const char *data;
    size_t stride;
} shown;

static shown show_request(const tsr_row_request *request)
{
    return (shown){.shard = request->local,
                   .shard_stride = request->local_stride,
                   .starts = request->starts,
                   .locals = request->locals,
                   .positions = request->positions,
                   .data = request->data,
                   .stride = request->stride};
}

/* What the rank at `position` shows for table `i`; valid until the call's end. Ranks of other
 * processes show it in the buffer of their call. */
static shown shown_by(const tsr_row_call *call, int position, size_t i)
{
    const tsr_comm *const comm = call->group->comm;
    if (tsr_comm_shares_all(comm))
        return show_request((const tsr_row_request *)tsr_call_of(comm, position)->extra + i);
    return ((const shown *)tsr_call_buffer_of(comm, position))[i];
}

/* Finds where this rank reads the rows of each row part: of one column part, in its replica. */
static void find_bases(const tsr_row_call *call, size_t i, int64_t columns)
{
    const tsr_row_table *const table = call->requests[i].table;
    for (int64_t part = 0; part < table->rows.count; part++) {
        const shown theirs = shown_by(call, tsr_row_position(table, part, columns, table->replicas.own), i);
        table->bases[part] = theirs.shard;
        table->strides[part] = theirs.shard_stride;
    }
}

static void fetch(const char *row, size_t bytes)
{
    for (size_t at = 0; at < bytes && at < FETCHED_BYTES; at += TSR_LINE)
        __builtin_prefetch(row + at);
}

/* Finds the row of an id, and begins to fetch it. `bytes` are those of a row. */
static const char *find_row(tsr_row_table *table, int64_t id, size_t bytes)
{
    const tsr_row_place place = tsr_row_find(&table->finder, id);
    const char *const row = table->bases[place.part] + (size_t)place.local * table->strides[place.part];
    fetch(row, bytes);
    return row;
}

static void copy_row(const tsr_row_table *table, const tsr_row_columns *columns, char *out, const char *row,
                     size_t bytes)
{
    if (columns->width == table->width)
        memcpy(out, row, bytes);
    else
        tsr_row_scatter(table, columns, out, row);
}

/* Reads the rows of all ids, those of one column part. Each row is fetched FETCHED_ROWS rows before
 * it is copied: by turns, so that neither fetches nor copies come in a rush. */
static void read_columns(const tsr_row_request *request, const tsr_row_columns *columns)
{
    tsr_row_table *const table = request->table;
    int64_t ids[FETCHED_ROWS];
    const char *rows[FETCHED_ROWS];
    const size_t bytes = (size_t)columns->width * table->element_bytes;
    char *out = request->data;
    if (bytes == 0)
        return;
    const int64_t begun = tsr_min_i64(FETCHED_ROWS, request->count);
    tsr_row_ids_read(request->ids, 0, begun, ids);
    for (int64_t i = 0; i < begun; i++)
        rows[i] = find_row(table, ids[i], bytes);
    for (int64_t first = 0; first < request->count; first += FETCHED_ROWS) {
        const int64_t count = tsr_min_i64(FETCHED_ROWS, request->count - first),
                      next = tsr_min_i64(FETCHED_ROWS, request->count - first - count);
        tsr_row_ids_read(request->ids, first + count, next, ids);
        for (int64_t i = 0; i < count; i++, out += request->stride) {
            const char *const row = rows[i];
            if (i < next)
                rows[i] = find_row(table, ids[i], bytes);
            copy_row(table, columns, out, row, bytes);
        }
    }
}

/* Reads one segment of the rows of all ids, on a device. */
static tsr_status read_segment(const tsr_row_call *call, const tsr_row_request *request, const tsr_row_segment *segment)
{
    tsr_row_table *const table = request->table;
    const size_t bytes = table->element_bytes;
    char *out = request->data + (size_t)segment->whole * bytes;
    int64_t ids[TSR_ROW_BLOCK];
    for (int64_t first = 0; first < request->count; first += TSR_ROW_BLOCK) {
        const int64_t count = tsr_min_i64(TSR_ROW_BLOCK, request->count - first);
        tsr_row_ids_read(request->ids, first, count, ids);
        for (int64_t i = 0; i < count; i++, out += request->stride)
            TSR_TRY(tsr_row_batch_copy(call->batch, table->layout->dtype, segment->length, out,
                                       find_row(table, ids[i], 0) + (size_t)segment->local * bytes));
    }
    return TSR_OK;
}

static tsr_status read_on_device(const tsr_row_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        const tsr_row_request *const request = &call->requests[i];
        const tsr_row_table *const table = request->table;
        for (int64_t columns = 0; columns < table->columns.count && request->count > 0; columns++) {
            const tsr_row_columns *const part = &table->parts[columns];
            find_bases(call, i, columns);
            for (size_t s = 0; s < part->count; s++)
                TSR_TRY(read_segment(call, request, &table->segments[part->first + s]));
        }
    }
    return tsr_row_batch_finish(call->batch);
}

static void read_rows(const tsr_row_call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        const tsr_row_request *const request = &call->requests[i];
        for (int64_t columns = 0; columns < request->table->columns.count && request->count > 0; columns++) {
            find_bases(call, i, columns);
            read_columns(request, &request->table->parts[columns]);
        }
    }
}

/* Lists what all ranks bring for this rank's rows of table `i`. */
static tsr_status list_sources(const tsr_row_call *call, size_t i)
{
    const tsr_row_table *const table = call->requests[i].table;
    const int64_t own = table->rows.own;
    TSR_TRY(tsr_row_call_begin_apply(call, i));
    for (int position = 0; position < call->group->count; position++) {
        const shown theirs = shown_by(call, position, i);
        const int64_t begin = theirs.starts[own];
        tsr_row_source *const source = &call->applies[i].sources[table->turns[position]];
        *source = (tsr_row_source){.count = theirs.starts[own + 1] - begin,
                                   .locals = theirs.locals + begin,
                                   .positions = theirs.positions ? theirs.positions + begin : NULL,
                                   .data = theirs.data,
                                   .stride = theirs.stride};
        if (!theirs.positions)
            source->data += (size_t)begin * theirs.stride;
    }
    return tsr_row_apply_prepare(&call->applies[i]);
}

static tsr_status prepare_update(const tsr_row_call *call)
{
    TSR_TRY(tsr_call_follow(call->group->comm));
    for (size_t i = 0; i < call->count; i++)
        TSR_TRY(list_sources(call, i));
    return TSR_OK;
}

static tsr_status apply_all(const tsr_row_call *call)
{
    TSR_TRY(tsr_call_follow(call->group->comm));
    for (size_t i = 0; i < call->count; i++)
        TSR_TRY(tsr_row_apply_run(&call->applies[i]));
    return TSR_OK;
}

static tsr_status sort_requests(const tsr_row_call *call)
{
    for (size_t i = 0; i < call->count && !call->gathers; i++)
        TSR_TRY(tsr_row_request_sort(&call->requests[i]));
    return TSR_OK;
}

/* Takes the memory of lists of a gather, for the largest of its tables. */
static tsr_status reserve_lists(const tsr_row_call *call)
{
    for (size_t i = 0; i < call->count && call->batch && call->gathers; i++)
        TSR_TRY(tsr_row_batch_reserve(call->batch, call->requests[i].count, 0));
    return TSR_OK;
}

/* No rank changes rows before all ranks have the memory for it. */
static tsr_status update(const tsr_row_call *call)
{
    TSR_TRY(tsr_call_middle(call->group->comm, prepare_update(call)));
    return tsr_call_end(call->group->comm, apply_all(call));
}

static tsr_status gather(const tsr_row_call *call)
{
    tsr_status status = tsr_call_follow(call->group->comm);
    if (status == TSR_OK && call->batch)
        status = read_on_device(call);
    else if (status == TSR_OK)
        read_rows(call);
    return tsr_call_end(call->group->comm, status);
}

tsr_status tsr_rows_run_directly(const tsr_row_call *call, tsr_status local)
{
    if (local == TSR_OK)
        local = sort_requests(call);
    if (local == TSR_OK)
        local = reserve_lists(call);
    tsr_call mine = {.fingerprint = call->fingerprint, .reaches = true, .extra = call->requests};
    mine.status = call->batch ? tsr_call_place(call->group->comm, &mine, call->batch->device, NULL, local) : local;
    TSR_TRY(tsr_call_begin(call->group->comm, &mine, tsr_row_call_describe, call));
    return call->gathers ? gather(call) : update(call);
}

bool tsr_rows_may_use_windows(const tsr_row_call *call)
{
    return tsr_comm_is_direct(call->group->comm) && tsr_comm_shares_some(call->rooms->sharing) &&
           call->count <= TSR_CALL_BUFFER_BYTES / sizeof(shown);
}

/* Copies what a sorted request brings to shared memory, of `*bytes` bytes from out->starts on. */
static tsr_status copy_request(const tsr_row_request *request, shown *out, size_t *bytes)
{
    const size_t starts = (size_t)request->table->rows.count + 1, count = (size_t)request->count;
    const size_t row = (size_t)request->table->width * request->table->element_bytes;
    const size_t front = tsr_round_up((starts + count) * sizeof(int64_t), TSR_ALIGNMENT);
    size_t rows;
    void *memory;
    if (__builtin_mul_overflow(count, row, &rows) || rows > SIZE_MAX - front)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu rows of %zu bytes", count, row);
    TSR_TRY(tsr_row_room_take(request->rooms, TSR_ROOM_SHOWN, front + rows, 1, &memory));
    int64_t *const numbers = memory;
    memcpy(numbers, request->starts, starts * sizeof *numbers);
    memcpy(numbers + starts, request->locals, count * sizeof *numbers);
    char *const data = (char *)memory + front;
    for (size_t i = 0; i < count && row > 0; i++)
        memcpy(data + i * row, request->data + (size_t)request->positions[i] * request->stride, row);
    *bytes = front + rows;
    *out = (shown){.starts = numbers, .locals = numbers + starts, .data = data, .stride = row};
    return TSR_OK;
}

/* Shows peers in other processes this rank's shards, or what it brings. `*hidden` counts what they
 * cannot reach. */
static tsr_status show_requests(const tsr_row_call *call, size_t *hidden)
{
    tsr_comm *const comm = call->group->comm;
    shown *const to = tsr_call_buffer(comm);
    TSR_TRY(sort_requests(call));
    for (size_t i = 0; i < call->count && to; i++) {
        const tsr_row_request *const request = &call->requests[i];
        size_t bytes = request->local_bytes;
        if (call->gathers)
            to[i] = show_request(request);
        else
            TSR_TRY(copy_request(request, &to[i], &bytes));
        const void *const memory = call->gathers ? (const void *)to[i].shard : to[i].starts;
        *hidden += bytes > 0 && !tsr_comm_shares(comm, memory, bytes);
    }
    return TSR_OK;
}

/* From the begin of a call in windows to its end. */
static tsr_status meet_in_windows(const tsr_row_call *call, tsr_status local, size_t hidden, bool *done)
{
    tsr_comm *const comm = call->group->comm;
    const tsr_call mine = {
        .fingerprint = call->fingerprint, .status = local, .reaches = true, .shows = true, .count = hidden};
    TSR_TRY(tsr_call_begin(comm, &mine, tsr_row_call_describe, call));
    *done = tsr_call_sum_counts(comm) == 0;
    if (!*done)
        return tsr_call_end(comm, TSR_OK);
    return call->gathers ? gather(call) : update(call);
}

tsr_status tsr_rows_run_in_windows(const tsr_row_call *call, tsr_status local, bool *done)
{
    size_t hidden = 0;
    *done = true;
    if (local == TSR_OK)
        local = show_requests(call, &hidden);
    const tsr_status status = meet_in_windows(call, local, hidden, done);
    tsr_call_forget(call->group->comm);
    return status;
}
