/* Plans of calls by id: their tables, and the memory that calls work in. */
#include "tensor/rows/rows_plan.h"

#include "base/memory/memory.h"
#include "comm/core/agree.h"
#include "comm/core/entry.h"
#include "tensor/rows/row_checks.h"
#include "tensor/rows/rows_calls.h"

#include <tessera/sys/status.h>

#include <stdio.h>

struct tsr_rows_plan {
    tsr_context *context; /* one reference */
    tsr_comm *comm;       /* of the tables' mesh */
    size_t count;
    int64_t capacity;
    tsr_dtensor **tables; /* one reference to each; NULL where there is none yet */
    tsr_row_request *requests;
    tsr_row_apply *applies;
    tsr_row_rooms *rooms; /* one a table, and behind them those for all */
};

tsr_status tsr_rows_plan_check(const char *call, size_t count, tsr_dtensor *const *tables, int64_t capacity,
                               const void *out)
{
    char name[32];
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", call);
    if (capacity < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: capacity is %lld: it is 0 or more ids", call,
                              (long long)capacity);
    for (size_t i = 0; i < count; i++) {
        if (!tables[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tables[%zu] is NULL", call, i);
        if (tables[i]->comm != tables[0]->comm || !tsr_mesh_equal(tables[i]->layout->mesh, tables[0]->layout->mesh))
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "%s: tables[%zu] is on another mesh than tables[0]: tables that share an exchange are "
                "on one mesh",
                call, i);
        snprintf(name, sizeof name, "tables[%zu]", i);
        TSR_TRY(tsr_row_check_table(call, name, tables[i], false));
    }
    return tsr_row_check_devices(call, count, tables);
}

static tsr_status fill_plan(tsr_rows_plan *plan, tsr_dtensor *const *tables)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(plan->context, plan->count, sizeof *plan->tables, &memory));
    plan->tables = memory;
    TSR_TRY(tsr_allocate_array(plan->context, plan->count, sizeof *plan->requests, &memory));
    plan->requests = memory;
    TSR_TRY(tsr_allocate_array(plan->context, plan->count, sizeof *plan->applies, &memory));
    plan->applies = memory;
    TSR_TRY(tsr_allocate_array(plan->context, plan->count + 1, sizeof *plan->rooms, &memory));
    plan->rooms = memory;
    for (size_t i = 0; i <= plan->count; i++)
        plan->rooms[i] =
            (tsr_row_rooms){.context = plan->context, .device = tables[0]->local.device, .sharing = plan->comm};
    for (size_t i = 0; i < plan->count; i++) {
        plan->tables[i] = tsr_dtensor_retain(tables[i]);
        plan->requests[i].rooms = &plan->rooms[i];
    }
    return TSR_OK;
}

static tsr_status reserve(tsr_rows_plan *plan, const tsr_group *group)
{
    for (size_t i = 0; i < plan->count && group; i++) {
        TSR_TRY(tsr_rows_open_table(plan->tables[i], group, &plan->requests[i].table));
        TSR_TRY(tsr_row_request_reserve(&plan->requests[i], plan->capacity));
    }
    return TSR_OK;
}

tsr_status tsr_rows_plan_make(size_t count, tsr_dtensor *const *tables, int64_t capacity, const tsr_group *group,
                              tsr_rows_plan **out)
{
    tsr_context *const context = tables[0]->layout->context;
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(context, sizeof(tsr_rows_plan), &memory));
    tsr_rows_plan *const plan = memory;
    plan->context = tsr_context_retain(context);
    plan->comm = tables[0]->comm;
    plan->count = count;
    plan->capacity = capacity;
    tsr_status status = fill_plan(plan, tables);
    if (status == TSR_OK)
        status = reserve(plan, group);
    if (status == TSR_OK)
        *out = plan;
    else
        tsr_rows_plan_destroy(plan);
    return status;
}

/* `local` is this rank's status so far. */
static tsr_status agree_on_plan(size_t count, tsr_dtensor *const *tables, int64_t capacity, tsr_status local,
                                tsr_rows_plan **out)
{
    tsr_row_call call = {.name = "tsr_rows_plan_create", .count = count, .first = tables[0]->layout, .gathers = true};
    const tsr_row_arguments arguments = {local == TSR_OK ? count : 1, tables, capacity, NULL, NULL};
    tsr_rows_plan *plan = NULL;
    TSR_TRY(tsr_rows_find_group(call.name, tables[0], &call.group));
    if (local == TSR_OK)
        local = tsr_rows_plan_make(count, tables, capacity, call.group, &plan);
    if (call.group)
        local = tsr_comm_agree(call.group->comm, tsr_rows_fingerprint(&call, &arguments), local, tsr_row_call_describe,
                               &call);
    if (local == TSR_OK)
        *out = plan;
    else
        tsr_rows_plan_destroy(plan);
    return local;
}

tsr_status tsr_rows_plan_create(size_t count, tsr_dtensor *const *tables, int64_t capacity, tsr_rows_plan **out)
{
    static const char call[] = "tsr_rows_plan_create";
    if (count == 0 || !tables || !tables[0])
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s", call,
                              count == 0 ? "count is 0: a plan has a table" : "tables or tables[0] is NULL");
    TSR_TRY(tsr_check_communicates(tables[0]->layout->mesh, call));
    TSR_TRY(tsr_comm_enter(tables[0]->comm, call));
    return tsr_comm_leave(tables[0]->comm, agree_on_plan(count, tables, capacity,
                                                         tsr_rows_plan_check(call, count, tables, capacity, out), out));
}

void tsr_rows_plan_destroy(tsr_rows_plan *plan)
{
    if (!plan)
        return;
    tsr_context *const context = plan->context;
    for (size_t i = 0; plan->rooms && i <= plan->count; i++)
        tsr_row_rooms_release(&plan->rooms[i]);
    for (size_t i = 0; plan->tables && i < plan->count; i++)
        tsr_dtensor_destroy(plan->tables[i]);
    tsr_release(context, plan->rooms);
    tsr_release(context, plan->applies);
    tsr_release(context, plan->requests);
    tsr_release(context, plan->tables);
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

static tsr_status run_plan(tsr_rows_plan *plan, tsr_row_call *call, const tsr_tensor *ids, const tsr_tensor *data)
{
    const tsr_row_arguments arguments = {plan->count, plan->tables, plan->capacity, ids, data};
    call->requests = plan->requests;
    call->applies = plan->applies;
    call->rooms = &plan->rooms[plan->count];
    TSR_TRY(tsr_check_communicates(plan->tables[0]->layout->mesh, call->name));
    TSR_TRY(tsr_comm_enter(plan->comm, call->name));
    return tsr_comm_leave(plan->comm, tsr_row_run_call(call, &arguments));
}

tsr_status tsr_rows_plan_gather(tsr_rows_plan *plan, const tsr_tensor *ids, const tsr_tensor *out)
{
    tsr_row_call call = {.name = "tsr_rows_plan_gather", .gathers = true};
    if (!plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: plan is NULL", call.name);
    return run_plan(plan, &call, ids, out);
}

tsr_status tsr_rows_plan_update(tsr_rows_plan *plan, const tsr_tensor *ids, const tsr_tensor *rows, tsr_rows_op op)
{
    tsr_row_call call = {.name = "tsr_rows_plan_update", .op = op};
    if (!plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: plan is NULL", call.name);
    return run_plan(plan, &call, ids, rows);
}

tsr_status tsr_rows_plan_step(tsr_rows_plan *plan, const char *name, const tsr_row_step *step, tsr_rows_op op,
                              const tsr_tensor *ids, const tsr_tensor *rows)
{
    tsr_row_call call = {.name = name, .op = op, .step = step};
    return run_plan(plan, &call, ids, rows);
}

tsr_dtensor *const *tsr_rows_plan_tables(const tsr_rows_plan *plan)
{
    return plan->tables;
}
