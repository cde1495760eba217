#include "tensor/rows/rows_calls.h"

#include "base/hash.h"
#include "comm/core/entry.h"
#include "comm/core/traits.h"
#include "comm/groups/mates.h"
#include "comm/meshes/along.h"
#include "tensor/rows/row_checks.h"
#include "tensor/rows/rows_direct.h"
#include "tensor/rows/rows_message.h"

#include <tessera/sys/status.h>

tsr_status tsr_rows_find_group(const char *name, const tsr_dtensor *table, const tsr_group **out)
{
    return tsr_mesh_find_group(table->layout->mesh, name, NULL, out);
}

tsr_status tsr_rows_open_table(tsr_dtensor *table, const tsr_group *group, tsr_row_table **out)
{
    if (!table->row_table || table->row_table->layout != table->layout) {
        tsr_row_table_destroy(table->row_table);
        table->row_table = NULL;
        TSR_TRY(tsr_row_table_create(table->layout, group, &table->row_table));
    }
    *out = table->row_table;
    return TSR_OK;
}

uint64_t tsr_rows_fingerprint(const tsr_row_call *call, const tsr_row_arguments *arguments)
{
    uint64_t hash = tsr_hash_text(TSR_HASH_SEED, call->name);
    hash = tsr_hash_word(hash, (uint64_t)call->op);
    if (call->step)
        hash = tsr_hash_word(hash, call->step->fingerprint);
    for (size_t i = 0; i < arguments->count; i++)
        hash = tsr_hash_word(hash, arguments->tables[i]->layout->hash);
    return hash;
}

/* Checks this rank's arguments, and fills in its requests. */
static tsr_status prepare(const tsr_row_call *call, const tsr_row_arguments *arguments)
{
    if (!arguments->ids || !arguments->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call->name,
                              !arguments->ids ? "ids"
                              : call->gathers ? "out"
                                              : "rows");
    /* What earlier work on the device's stream has found comes before anything is written. */
    if (call->batch)
        TSR_TRY(tsr_row_rooms_settle(&call->batch->ops, TSR_OK));
    for (size_t i = 0; i < call->count; i++) {
        tsr_dtensor *const table = arguments->tables[i];
        tsr_row_request *const request = &call->requests[i];
        TSR_TRY(tsr_row_check_table(call->name, "table", table, !call->gathers));
        if (!call->gathers)
            TSR_TRY(tsr_row_op_check(call->name, call->op, table->layout->dtype));
        TSR_TRY(tsr_row_check_operands(call->name, table, call->gathers, arguments->capacity, &arguments->ids[i],
                                       &arguments->data[i], request));
        TSR_TRY(tsr_rows_open_table(table, call->group, &request->table));
    }
    return tsr_row_check_apart(call->name, call->gathers, call->count, arguments->tables, arguments->ids,
                               arguments->data);
}

tsr_status tsr_row_run_call(tsr_row_call *call, const tsr_row_arguments *arguments)
{
    const tsr_dtensor *const first = arguments->tables[0];
    TSR_TRY(tsr_rows_find_group(call->name, first, &call->group));
    if (!call->group)
        return TSR_OK;
    TSR_TRY(tsr_group_find_mates(call->group->comm, call->name, &call->mates));
    call->count = arguments->count;
    call->ops = tsr_device_resolve(first->layout->context, tsr_device_host());
    call->fingerprint = tsr_rows_fingerprint(call, arguments);
    call->first = first->layout;
    tsr_row_batch batch;
    if (first->local.device.driver) {
        tsr_row_batch_begin(&batch, first->layout->context, first->local.device, call->rooms);
        call->batch = &batch;
        /* The kind of the driver is another number in each process. */
        call->fingerprint = tsr_hash_text(call->fingerprint, batch.ops.table->name);
    }
    const tsr_status local = prepare(call, arguments);
    if (tsr_comm_shares_all(call->group->comm))
        return tsr_rows_run_directly(call, local);
    bool done = false;
    if (!call->batch && tsr_rows_may_use_windows(call))
        TSR_TRY(tsr_rows_run_in_windows(call, local, &done));
    return done ? TSR_OK : tsr_rows_run_by_messages(call, local);
}

/* A call of one table, whose memory is freed at its end. */
static tsr_status run_once(tsr_row_call *call, tsr_dtensor *table, const tsr_tensor *ids, const tsr_tensor *data)
{
    tsr_row_rooms rooms = {.context = table->layout->context, .device = table->local.device, .sharing = table->comm};
    tsr_row_request request = {.rooms = &rooms};
    tsr_row_apply apply;
    const tsr_row_arguments arguments = {1, &table, INT64_MAX, ids, data};
    call->requests = &request;
    call->applies = &apply;
    call->rooms = &rooms;
    TSR_TRY(tsr_check_communicates(table->layout->mesh, call->name));
    TSR_TRY(tsr_comm_enter(table->comm, call->name));
    const tsr_status status = tsr_comm_leave(table->comm, tsr_row_run_call(call, &arguments));
    tsr_row_rooms_release(&rooms);
    return status;
}

/* The table changes only in that it keeps what follows from its layout. */
tsr_status tsr_rows_gather(const tsr_dtensor *table, const tsr_tensor *ids, const tsr_tensor *out)
{
    tsr_row_call call = {.name = "tsr_rows_gather", .gathers = true};
    if (!table)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: table is NULL", call.name);
    return run_once(&call, (tsr_dtensor *)table, ids, out);
}

tsr_status tsr_rows_update(tsr_dtensor *table, const tsr_tensor *ids, const tsr_tensor *rows, tsr_rows_op op)
{
    tsr_row_call call = {.name = "tsr_rows_update", .op = op};
    if (!table)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: table is NULL", call.name);
    return run_once(&call, table, ids, rows);
}
