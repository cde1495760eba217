#include "script.h"

#include "ranks.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

/* The value of an output before a call. A call that fails must leave it there. */
#define UNTOUCHED(type) ((type *)(void *)&untouched)
static char untouched;

/* Returns `status`, or an error if a failed call wrote its output. */
static tsr_status outcome(tsr_status status, const void *output)
{
    if (status != TSR_OK && output != &untouched)
        return tsr_status_set(TSR_ERROR_INTERNAL, "an output was written by a call that failed: %s",
                              tsr_status_message());
    return status;
}

static const int64_t shape[] = {8, 8}, odd_shape[] = {8, 6};

static tsr_status make_mesh(actor *a, int odd)
{
    (void)odd;
    const int64_t size = tsr_comm_size(a->comm);
    tsr_mesh *mesh = UNTOUCHED(tsr_mesh);
    TSR_TRY(outcome(tsr_mesh_create(a->comm, 1, &size, NULL, NULL, &mesh), mesh));
    a->mesh = mesh;
    return TSR_OK;
}

static tsr_status parse_mesh(actor *a, int odd)
{
    static const char *const texts[] = {"1", "2@[1,0]", "3@[2,1,0]", "4@[3,2,1,0]"};
    (void)odd;
    tsr_mesh *mesh = UNTOUCHED(tsr_mesh);
    TSR_TRY(outcome(tsr_mesh_parse(a->comm, NULL, texts[tsr_comm_size(a->comm) - 1], &mesh), mesh));
    a->falling = mesh;
    return TSR_OK;
}

static tsr_status make_layouts(actor *a, int odd)
{
    (void)odd;
    tsr_layout *rows = UNTOUCHED(tsr_layout), *columns = UNTOUCHED(tsr_layout);
    TSR_TRY(outcome(tsr_layout_parse(a->mesh, "S(0)", 2, shape, TSR_F32, &rows), rows));
    const tsr_status status =
        outcome(tsr_layout_parse(a->mesh, "S(1;sizes=8,0,0)", 2, shape, TSR_F32, &columns), columns);
    if (status != TSR_OK) {
        tsr_layout_destroy(rows);
        return status;
    }
    a->rows = rows;
    a->columns = columns;
    return TSR_OK;
}

static tsr_status distribute(actor *a, int odd)
{
    (void)odd;
    const tsr_tensor global = tsr_tensor_contiguous(a->values, TSR_F32, 2, shape);
    const tsr_placement placement = tsr_shard(0);
    tsr_dtensor *x = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_distribute_tensor(&global, a->mesh, &placement, NULL, &x), x));
    a->x = x;
    return TSR_OK;
}

static tsr_status redistribute(actor *a, int odd)
{
    const tsr_placement placement = odd ? tsr_replicate() : tsr_shard(1);
    tsr_dtensor *y = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_redistribute(a->x, &placement, &y), y));
    a->y = y;
    return TSR_OK;
}

static tsr_status redistribute_again(actor *a, int odd)
{
    return odd ? tsr_redistribute_into(a->y, a->x, NULL) : tsr_redistribute_into(a->x, a->y, NULL);
}

static tsr_status gather(actor *a, int odd)
{
    tsr_dtensor *z = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_full_tensor(odd ? a->y : a->x, &z), z));
    a->z = z;
    return TSR_OK;
}

static tsr_status make_plan(actor *a, int odd)
{
    (void)odd;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    tsr_plan *plan = UNTOUCHED(tsr_plan);
    TSR_TRY(outcome(tsr_plan_create(a->rows, a->columns, &options, &plan), plan));
    a->plan = plan;
    return TSR_OK;
}

static tsr_status prepare(actor *a, int odd)
{
    if (!odd)
        return tsr_plan_prepare(a->plan, a->comm);
    tsr_plan *other = NULL;
    TSR_TRY(tsr_plan_create(a->columns, a->rows, NULL, &other));
    const tsr_status status = tsr_plan_prepare(other, a->comm);
    tsr_plan_destroy(other);
    return status;
}

/* The destination: rank 0 has all of the tensor. */
static tsr_tensor moved(actor *a)
{
    const int64_t moved_shape[] = {8, a->rank == 0 ? 8 : 0};
    return tsr_tensor_contiguous(a->moved, TSR_F32, 2, moved_shape);
}

static tsr_status execute(actor *a, int odd)
{
    if (odd)
        return tsr_redistribute_into(a->x, a->y, NULL);
    const tsr_tensor src = tsr_dtensor_to_local(a->x), dst = moved(a);
    size_t bytes;
    a->workspace = workspace_for(a->plan, &bytes);
    return tsr_plan_execute(a->plan, a->comm, &src, &dst, a->workspace, bytes, NULL);
}

static tsr_status start(actor *a, int odd)
{
    if (odd)
        return tsr_redistribute_into(a->x, a->y, NULL);
    const tsr_tensor src = tsr_dtensor_to_local(a->x), dst = moved(a);
    return tsr_plan_start(a->plan, a->comm, &src, &dst, a->workspace, tsr_plan_workspace_bytes(a->plan), NULL);
}

static tsr_status finish(actor *a, int odd)
{
    (void)odd;
    return tsr_plan_finish(a->plan, a->comm);
}

/* Starts and finishes an execution in one step. Where ranks read each other's memory, the start
 * does not yet know what the others bring. */
static tsr_status start_and_finish(actor *a, int odd)
{
    tsr_plan *plan = NULL;
    TSR_TRY(tsr_plan_create(a->rows, a->columns, NULL, &plan));
    tsr_status status = tsr_plan_prepare(plan, a->comm);
    const tsr_tensor src = tsr_dtensor_to_local(a->x), dst = moved(a);
    size_t bytes;
    void *workspace = workspace_for(plan, &bytes);
    if (status == TSR_OK)
        status = odd ? tsr_redistribute_into(a->x, a->y, NULL)
                     : tsr_plan_start(plan, a->comm, &src, &dst, workspace, bytes, NULL);
    if (status == TSR_OK && !odd)
        status = tsr_plan_finish(plan, a->comm);
    free(workspace);
    tsr_plan_destroy(plan);
    return status;
}

static tsr_status redistribute_together(actor *a, int odd)
{
    const tsr_dtensor *x[] = {a->x, a->x};
    tsr_dtensor *y[] = {odd ? a->z : a->y, odd ? a->y : a->z};
    return tsr_redistribute_batch(2, x, y, NULL);
}

static tsr_status distribute_from_one(actor *a, int odd)
{
    const tsr_tensor global = tsr_tensor_contiguous(a->values, TSR_F32, 2, odd ? odd_shape : shape);
    const tsr_placement placement = tsr_shard(1);
    tsr_distribute_options options = TSR_DISTRIBUTE_OPTIONS_INIT;
    options.source_rank = 1;
    tsr_dtensor *z = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_distribute_tensor(&global, a->mesh, &placement, &options, &z), z));
    tsr_dtensor_destroy(a->z);
    a->z = z;
    return TSR_OK;
}

static tsr_status from_local(actor *a, int odd)
{
    tsr_from_local_options options = TSR_FROM_LOCAL_OPTIONS_INIT;
    options.check = 1;
    const tsr_tensor local = tsr_dtensor_to_local(odd ? a->y : a->x);
    tsr_dtensor *z = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_dtensor_from_local(&local, tsr_dtensor_layout(odd ? a->y : a->x), &options, &z), z));
    tsr_dtensor_destroy(z);
    return TSR_OK;
}

static tsr_status go_backward(actor *a, int odd)
{
    tsr_dtensor *dx = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_redistribute_backward(odd ? a->x : a->y, odd ? tsr_dtensor_layout(a->y) : a->rows, &dx), dx));
    tsr_dtensor_destroy(dx);
    return TSR_OK;
}

static tsr_status split(actor *a, int odd)
{
    tsr_comm *half = UNTOUCHED(tsr_comm);
    if (odd)
        return tsr_comm_barrier(a->comm);
    TSR_TRY(outcome(tsr_comm_split(a->comm, a->rank % 2, 0, &half), half));
    tsr_comm_destroy(half);
    return TSR_OK;
}

static tsr_status reduce(actor *a, int odd)
{
    return tsr_comm_all_reduce(a->comm, a->values, a->moved, odd ? 3 : 4, TSR_F32, TSR_SUM, tsr_device_host(), NULL);
}

static tsr_status split_mesh(actor *a, int odd)
{
    tsr_mesh *sub = UNTOUCHED(tsr_mesh);
    TSR_TRY(outcome(tsr_mesh_split(odd ? a->mesh : a->falling, NULL, &sub), sub));
    tsr_mesh_destroy(sub);
    return TSR_OK;
}

/* The first call makes a group. */
static tsr_status reduce_along(actor *a, int odd)
{
    int64_t value = 1;
    return tsr_mesh_all_reduce_i64(odd ? a->mesh : a->falling, NULL, &value, TSR_SUM);
}

/* Never odd: sentences would compare with the rank at position 0, which is not rank 0. */
static tsr_status gather_along(actor *a, int odd)
{
    (void)odd;
    return tsr_mesh_all_gather(a->falling, "0", a->values, a->moved, 4, NULL, TSR_F32, tsr_device_host(), NULL);
}

static tsr_status make_far(actor *a, int odd)
{
    (void)odd;
    const int64_t size = tsr_comm_size(a->comm);
    int64_t ranks[8];
    tsr_mesh *mesh = UNTOUCHED(tsr_mesh);
    tsr_layout *layout = UNTOUCHED(tsr_layout);
    tsr_dtensor *far = UNTOUCHED(tsr_dtensor);
    for (int64_t i = 0; i < size; i++)
        ranks[i] = size - 1 - i;
    TSR_TRY(outcome(tsr_mesh_create(a->comm, 1, &size, NULL, ranks, &mesh), mesh));
    tsr_status status = outcome(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &layout), layout);
    if (status == TSR_OK) {
        status = outcome(tsr_dtensor_create(layout, tsr_device_host(), &far), far);
        tsr_layout_destroy(layout);
    }
    tsr_mesh_destroy(mesh);
    a->far = status == TSR_OK ? far : NULL;
    return status;
}

static tsr_status move_far(actor *a, int odd)
{
    return odd ? tsr_redistribute_into(a->far, a->x, NULL) : tsr_redistribute_into(a->x, a->far, NULL);
}

static tsr_status make_gaps(actor *a, int odd)
{
    (void)odd;
    tsr_tensor local = tsr_dtensor_to_local(a->x);
    local.data = a->spread;
    local.strides[0] = 16;
    local.strides[1] = 2;
    tsr_dtensor *gaps = UNTOUCHED(tsr_dtensor), *view = UNTOUCHED(tsr_dtensor);
    TSR_TRY(outcome(tsr_dtensor_from_local(&local, a->rows, NULL, &gaps), gaps));
    tsr_status status = outcome(tsr_dtensor_rows(gaps, 1, 6, &view), view);
    if (status == TSR_OK) {
        status = tsr_dtensor_fill(view, 1, NULL);
        tsr_dtensor_destroy(view);
    }
    if (status != TSR_OK) {
        tsr_dtensor_destroy(gaps);
        return status;
    }
    a->gaps = gaps;
    return TSR_OK;
}

static tsr_status sum_gaps(actor *a, int odd)
{
    double sum = -7;
    const tsr_status status = odd ? tsr_dtensor_norm(a->gaps, &sum) : tsr_dtensor_sum(a->gaps, &sum);
    return status == TSR_OK || sum == -7 ? status : outcome(status, NULL);
}

static tsr_status exchange_rows(actor *a, int odd)
{
    int64_t counts[8] = {0}, received[8];
    counts[0] = 1;
    const int64_t rows[] = {odd ? 2 : 1, odd ? 1 : 2}, room[] = {odd ? 16 : 8, odd ? 1 : 2};
    const tsr_tensor send = tsr_tensor_contiguous(a->values, TSR_F32, 2, rows),
                     receive = tsr_tensor_contiguous(a->moved, TSR_F32, 2, room);
    return tsr_comm_exchange_rows(a->comm, &send, counts, &receive, received, NULL);
}

const step script[] = {
    {"tsr_mesh_create", make_mesh, 0, 0, 1},
    {"tsr_layout_parse", make_layouts, 0, 0, 1},
    {"tsr_distribute_tensor", distribute, 0, 0, 1},
    {"tsr_redistribute", redistribute, 1, 1, 1},
    {"tsr_redistribute_into", redistribute_again, 1, 1, 1},
    {"tsr_full_tensor", gather, 1, 1, 1},
    {"tsr_plan_create", make_plan, 0, 0, 1},
    {"tsr_plan_prepare", prepare, 1, 1, 1},
    {"tsr_plan_execute", execute, 1, 1, 1},
    {"tsr_plan_start", start, 1, 1, 1},
    {"tsr_plan_finish", finish, 1, 0, 0},
    {"tsr_plan_start and tsr_plan_finish", start_and_finish, 0, 1, 1},
    {"tsr_redistribute_batch", redistribute_together, 1, 1, 1},
    {"tsr_distribute_tensor from one rank", distribute_from_one, 1, 1, 1},
    {"tsr_dtensor_from_local", from_local, 1, 1, 1},
    {"tsr_redistribute_backward", go_backward, 1, 1, 1},
    {"tsr_comm_split", split, 1, 1, 1},
    {"tsr_comm_all_reduce", reduce, 1, 1, 1},
    {"tsr_mesh_parse", parse_mesh, 0, 0, 1},
    {"tsr_mesh_split", split_mesh, 1, 1, 1},
    {"tsr_mesh_all_reduce_i64", reduce_along, 1, 1, 1},
    {"tsr_mesh_all_gather", gather_along, 1, 0, 1},
    {"tsr_dtensor_create on another mesh", make_far, 0, 0, 1},
    {"tsr_redistribute_into between meshes", move_far, 1, 1, 1},
    {"tsr_dtensor_rows", make_gaps, 0, 0, 1},
    {"tsr_dtensor_sum", sum_gaps, 1, 1, 1},
    {"tsr_comm_exchange_rows", exchange_rows, 1, 1, 1},
};

const int script_length = (int)(sizeof script / sizeof script[0]);

void actor_start(actor *a, tsr_comm *comm)
{
    memset(a, 0, sizeof *a);
    a->comm = comm;
    a->rank = tsr_comm_rank(comm);
    for (int i = 0; i < 64; i++)
        a->values[i] = (float)i;
}

void actor_finish(actor *a)
{
    tsr_plan_destroy(a->plan);
    tsr_dtensor_destroy(a->gaps);
    tsr_dtensor_destroy(a->far);
    tsr_dtensor_destroy(a->x);
    tsr_dtensor_destroy(a->y);
    tsr_dtensor_destroy(a->z);
    tsr_layout_destroy(a->rows);
    tsr_layout_destroy(a->columns);
    tsr_mesh_destroy(a->falling);
    tsr_mesh_destroy(a->mesh);
    free(a->workspace);
}
