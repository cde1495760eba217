#include "tensor/rows/rows_direct.h"

#include "base/checked.h"
#include "comm/core/call.h"
#include "comm/core/traits.h"
#include "tensor/rows/row_ids.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Bytes of a row that are fetched before they are copied. */
#define FETCHED_BYTES 512

/* Where a rank's shard of a table lies. */
typedef struct shard {
    const char *rows;
    size_t stride; /* bytes from row to row */
} shard;

/* The request of a peer, or of this rank, for table `i`; valid until the call's end. */
static const tsr_row_request *request_of(const tsr_row_call *call, int position, size_t i)
{
    return (const tsr_row_request *)tsr_call_of(call->group->comm, position)->extra + i;
}

static shard shard_of_request(const tsr_row_request *request)
{
    return (shard){request->local, request->local_stride};
}

/* Where a rank's shard of table `i` lies. What ranks of other processes say of it is in the buffer
 * of their call. */
static shard shard_of(const tsr_row_call *call, int position, size_t i)
{
    if (tsr_comm_shares_all(call->group->comm))
        return shard_of_request(request_of(call, position, i));
    return ((const shard *)tsr_call_buffer_of(call->group->comm, position))[i];
}

/* Finds where this rank reads the rows of each row part: of one column part, in its replica. */
static void find_bases(const tsr_row_call *call, size_t i, int64_t columns)
{
    const tsr_row_table *const table = call->requests[i].table;
    for (int64_t part = 0; part < table->rows.count; part++) {
        const shard theirs = shard_of(call, tsr_row_position(table, part, columns, table->replicas.own), i);
        table->bases[part] = theirs.rows;
        table->strides[part] = theirs.stride;
    }
}

static void fetch(const char *row, size_t bytes)
{
    for (size_t at = 0; at < bytes && at < FETCHED_BYTES; at += TSR_LINE)
        __builtin_prefetch(row + at);
}

/* Finds the rows of a block of ids, and begins to fetch them. `bytes` are those of a row. */
static void find_rows(const tsr_row_table *table, const int64_t *ids, int64_t count, size_t bytes, const char **rows)
{
    for (int64_t i = 0; i < count; i++) {
        const tsr_row_place place = tsr_row_find(&((tsr_row_table *)table)->finder, ids[i]);
        rows[i] = table->bases[place.part] + (size_t)place.local * table->strides[place.part];
        fetch(rows[i], bytes);
    }
}

static void copy_rows(const tsr_row_request *request, const tsr_row_columns *columns, int64_t first, int64_t count,
                      const char *const *rows)
{
    const tsr_row_table *const table = request->table;
    const size_t bytes = (size_t)columns->width * table->element_bytes;
    char *out = request->data + (size_t)first * request->stride;
    if (columns->width == table->width)
        for (int64_t i = 0; i < count; i++, out += request->stride)
            memcpy(out, rows[i], bytes);
    else
        for (int64_t i = 0; i < count; i++, out += request->stride)
            tsr_row_scatter(table, columns, out, rows[i]);
}

/* Reads the rows of all ids, those of one column part. */
static void read_columns(const tsr_row_request *request, const tsr_row_columns *columns)
{
    int64_t ids[TSR_ROW_BLOCK];
    const char *rows[TSR_ROW_BLOCK];
    const size_t bytes = (size_t)columns->width * request->table->element_bytes;
    if (bytes == 0)
        return;
    for (int64_t first = 0; first < request->count; first += TSR_ROW_BLOCK) {
        const int64_t count = tsr_min_i64(TSR_ROW_BLOCK, request->count - first);
        tsr_row_ids_read(request->ids, first, count, ids);
        find_rows(request->table, ids, count, bytes, rows);
        copy_rows(request, columns, first, count, rows);
    }
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
        const tsr_row_request *const theirs = request_of(call, position, i);
        const int64_t begin = theirs->starts[own];
        call->applies[i].sources[table->turns[position]] = (tsr_row_source){.count = theirs->starts[own + 1] - begin,
                                                                            .locals = theirs->locals + begin,
                                                                            .positions = theirs->positions + begin,
                                                                            .data = theirs->data,
                                                                            .stride = theirs->stride};
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

/* No rank changes rows before all ranks have the memory for it. */
static tsr_status update(const tsr_row_call *call)
{
    TSR_TRY(tsr_call_middle(call->group->comm, prepare_update(call)));
    return tsr_call_end(call->group->comm, apply_all(call));
}

static tsr_status gather(const tsr_row_call *call)
{
    const tsr_status status = tsr_call_follow(call->group->comm);
    if (status == TSR_OK)
        read_rows(call);
    return tsr_call_end(call->group->comm, status);
}

tsr_status tsr_rows_run_directly(const tsr_row_call *call, tsr_status local)
{
    if (local == TSR_OK)
        local = sort_requests(call);
    const tsr_call mine = {.fingerprint = call->fingerprint, .status = local, .reaches = true, .extra = call->requests};
    TSR_TRY(tsr_call_begin(call->group->comm, &mine, tsr_row_call_describe, call));
    return call->gathers ? gather(call) : update(call);
}

bool tsr_rows_may_use_windows(const tsr_row_call *call)
{
    return call->gathers && tsr_comm_is_direct(call->group->comm) &&
           call->count <= TSR_CALL_BUFFER_BYTES / sizeof(shard);
}

/* Tells peers where this rank's shards lie, and counts those which they cannot read. */
static size_t show_shards(const tsr_row_call *call)
{
    shard *const shown = tsr_call_buffer(call->group->comm);
    size_t hidden = 0;
    for (size_t i = 0; i < call->count && shown; i++) {
        const tsr_row_request *const request = &call->requests[i];
        shown[i] = shard_of_request(request);
        hidden += request->local_bytes > 0 && !tsr_comm_shares(call->group->comm, request->local, request->local_bytes);
    }
    return hidden;
}

tsr_status tsr_rows_gather_from_windows(const tsr_row_call *call, tsr_status local, bool *done)
{
    tsr_comm *const comm = call->group->comm;
    const tsr_call mine = {.fingerprint = call->fingerprint,
                           .status = local,
                           .reaches = true,
                           .shows = true,
                           .count = local == TSR_OK ? show_shards(call) : 0};
    *done = true;
    TSR_TRY(tsr_call_begin(comm, &mine, tsr_row_call_describe, call));
    *done = tsr_call_sum_counts(comm) == 0;
    return *done ? gather(call) : tsr_call_end(comm, TSR_OK);
}
