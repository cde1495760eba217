#include "redistribute/execute/execution.h"

#include "comm/core/comm.h"
#include "comm/core/traits.h"
#include "redistribute/execute/agreement.h"
#include "redistribute/execute/bind.h"
#include "redistribute/execute/direct.h"
#include "redistribute/execute/message.h"
#include "redistribute/execute/native.h"
#include "redistribute/execute/prepare.h"
#include "redistribute/execute/shelf.h"
#include "redistribute/execute/small.h"
#include "redistribute/schedule/collective.h"

#include <tessera/sys/plan.h>
#include <tessera/sys/status.h>

#include <string.h>

static tsr_status fill_destination(const tsr_execution *e, const tsr_bound *b)
{
    const tsr_item *item = b->item;
    tsr_tensor dst = {.data = b->dst.base, .dtype = item->dst->dtype, .device = e->device, .ndim = item->dst_ndim};
    for (int dim = 0; dim < dst.ndim; dim++) {
        dst.shape[dim] = item->dst_shape[dim];
        dst.strides[dim] = b->dst.strides[dim];
    }
    return tsr_device_fill_identity(&e->ops, &dst, item->problem.fill, e->stream);
}

/* The shortcut's fills come first, since the elements that are kept overwrite them. Other new
 * Partial terms are filled last: where source and destination are one memory, peers have read it by
 * then. */
static tsr_status fill_all(const tsr_execution *e, bool shortcuts)
{
    for (size_t i = 0; i < e->plan->count; i++) {
        const tsr_item *item = e->bound[i].item;
        if (item->fills && item->problem.shortcut == shortcuts)
            TSR_TRY(fill_destination(e, &e->bound[i]));
    }
    return TSR_OK;
}

static bool by_messages(const tsr_execution *e)
{
    return e->plan->options.mode == TSR_MODE_MESSAGE && e->group;
}

/* Sets where each item's reductions of direct mode go: where source and destination are one memory,
 * to the workspace, one item after the other; else to the destination. */
static void place_results(tsr_execution *e)
{
    size_t used = 0;
    for (size_t i = 0; i < e->plan->count; i++) {
        tsr_bound *b = &e->bound[i];
        b->result = b->dst;
        if (!b->item->staged)
            continue;
        if (!e->eager && b->src.base == b->dst.base && b->dst.base)
            b->result = (tsr_place){e->workspace ? e->workspace + used : NULL, b->item->dst_strides};
        used += tsr_item_staged_bytes(b->item);
    }
}

/* A rank that failed takes part without tensors. */
static void unbind(tsr_execution *e)
{
    for (size_t i = 0; i < e->plan->count; i++) {
        e->bound[i].src = (tsr_place){NULL, e->plan->items[i].src_strides};
        e->bound[i].dst = (tsr_place){NULL, e->plan->items[i].dst_strides};
    }
    e->device = tsr_device_host();
    e->placeless = false;
}

static tsr_status bind(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, size_t bytes, tsr_status local)
{
    for (size_t i = 0; i < e->plan->count; i++)
        e->bound[i].item = &e->plan->items[i];
    e->device = tsr_device_host();
    e->placeless = true;
    if (local == TSR_OK)
        local = tsr_execution_take(e, src, dst, bytes);
    if (local != TSR_OK)
        unbind(e);
    return local;
}

/* `choices`: the kernels chosen for this rank, with which the host's table is called. */
static tsr_status start_execution(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, size_t bytes,
                                  tsr_status local, void *choices)
{
    e->checked = !by_messages(e) || tsr_execution_is_checked(e, src, dst);
    local = bind(e, src, dst, bytes, local);
    if (e->device.driver)
        e->ops = tsr_device_resolve(e->plan->context, e->device);
    else
        e->ops = (tsr_device_ops){e->plan->host.table, choices, 0};
    e->eager = e->plan->eager && !e->device.driver;
    if (local == TSR_OK && tsr_has_shelf(e))
        local = tsr_shelf_begin(e);
    place_results(e);
    if (local == TSR_OK && e->plan->fills)
        local = fill_all(e, true);
    if (!by_messages(e))
        return tsr_direct_start(e, local);
    e->native = NULL;
    return tsr_native_is_found(e->plan, e->group) ? tsr_native_start(e, local) : tsr_message_start(e, local);
}

static tsr_status finish_crossing(tsr_execution *e)
{
    if (!by_messages(e))
        return tsr_direct_finish(e);
    return e->native ? tsr_native_finish(e) : tsr_message_finish(e);
}

static tsr_status finish_execution(tsr_execution *e)
{
    TSR_TRY(finish_crossing(e));
    if (e->plan->fills)
        TSR_TRY(fill_all(e, false));
    return tsr_has_shelf(e) ? tsr_shelf_end(e) : TSR_OK;
}

/* Refuses a call while a started execution uses the group's scratch. */
static tsr_status check_idle(const tsr_group *group)
{
    if (!group || !tsr_holding_of(group)->pending)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_STATE,
                          "an execution was started on this communicator: call tsr_plan_finish() first");
}

tsr_status tsr_plan_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst,
                        void *workspace, size_t bytes, tsr_stream stream, tsr_status local)
{
    tsr_bound one;
    tsr_execution e;
    TSR_TRY(check_idle(group));
    if (plan->small.found && local == TSR_OK && tsr_small_takes(plan, src, dst, workspace, bytes, stream))
        return tsr_small_run(plan, group, src, dst);
    e.plan = plan;
    e.group = plan->local ? NULL : group;
    e.bound = &one;
    if (plan->count > 1) {
        const tsr_scratch scratch = tsr_scratch_divide(plan, tsr_holding_of(group)->scratch);
        e.bound = scratch.bound;
        e.spans = scratch.spans;
    }
    e.workspace = workspace;
    e.stream = stream;
    TSR_TRY(start_execution(&e, src, dst, bytes, local, group ? group->choices : plan->host.self));
    return finish_execution(&e);
}

/* Copies the descriptions of a started execution's tensors: the caller of tsr_plan_start() keeps
 * only their memory. */
static const tsr_tensor *keep_tensors(const tsr_plan *plan, const tsr_tensor *tensors, tsr_tensor *kept)
{
    if (tensors)
        memcpy(kept, tensors, plan->count * sizeof *kept);
    return tensors ? kept : NULL;
}

/* The group of a plan that was prepared on `comm`; NULL: there is none. `*prepared`: it has the
 * memory that the plan needs. With no_split it is all of `comm`, for the key may be that of another
 * communicator, on which the plan was prepared last. */
static const tsr_group *find_group(const tsr_plan *plan, tsr_comm *comm, bool *prepared)
{
    const uint64_t key = __atomic_load_n(&plan->found->group_key, __ATOMIC_ACQUIRE);
    const tsr_group *group = !key ? NULL : plan->options.no_split ? tsr_group_whole(comm) : tsr_group_find(comm, key);
    *prepared =
        group &&
        tsr_holding_of(group)->scratch_bytes >= __atomic_load_n(&plan->found->scratch_bytes, __ATOMIC_RELAXED) &&
        tsr_holding_of(group)->shelf_bytes >= __atomic_load_n(&plan->found->shelf_bytes, __ATOMIC_RELAXED);
    return group;
}

/* Peers are told: in a group that other plans made, some ranks may have room for this plan, and
 * wait for the others. */
static tsr_status say_unprepared(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src,
                                 const tsr_tensor *dst, tsr_stream stream)
{
    tsr_execution e = {.plan = plan, .group = group, .stream = stream};
    const tsr_status local = tsr_status_set(
        TSR_ERROR_STATE, "the plan was not prepared on this communicator: every rank calls tsr_plan_prepare() first");
    if (!group)
        return local;
    e.checked = plan->options.mode != TSR_MODE_MESSAGE || tsr_execution_is_checked(&e, src, dst);
    return tsr_execution_agree(&e, local);
}

static tsr_status check_call(const char *call, const tsr_plan *plan, const tsr_comm *comm)
{
    if (!plan || !comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, !plan ? "plan" : "comm");
    return tsr_plan_check_comm(plan, comm);
}

/* Executes within tsr_comm_enter() and tsr_comm_leave(), on a rank that takes part. */
static tsr_status execute_on_comm(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                                  void *workspace, size_t bytes, tsr_stream stream)
{
    bool prepared;
    const tsr_group *group = find_group(plan, comm, &prepared);
    return prepared ? tsr_plan_run(plan, group, src, dst, workspace, bytes, stream, TSR_OK)
                    : say_unprepared(plan, group, src, dst, stream);
}

tsr_status tsr_plan_execute(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                            void *workspace, size_t bytes, tsr_stream stream)
{
    TSR_TRY(check_call("tsr_plan_execute", plan, comm));
    if (!tsr_plan_takes_part(plan))
        return TSR_OK;
    TSR_TRY(tsr_comm_enter(comm, "tsr_plan_execute"));
    return tsr_comm_leave(comm, execute_on_comm(plan, comm, src, dst, workspace, bytes, stream));
}

tsr_status tsr_plan_execute_failed(const tsr_plan *plan, tsr_comm *comm, tsr_stream stream, tsr_status failed)
{
    return tsr_plan_execute_failed_on(plan, comm, tsr_device_host(), stream, failed);
}

tsr_status tsr_plan_execute_failed_on(const tsr_plan *plan, tsr_comm *comm, tsr_device device, tsr_stream stream,
                                      tsr_status failed)
{
    bool prepared;
    tsr_kept_sentence own;
    tsr_status_keep_returned(&own, failed);
    TSR_TRY(check_call("tsr_plan_execute_failed", plan, comm));
    const tsr_group *const group = find_group(plan, comm, &prepared);
    if (!tsr_plan_takes_part(plan) || plan->local || !prepared)
        return tsr_status_restore(&own, failed);
    TSR_TRY(tsr_comm_enter(comm, "tsr_plan_execute_failed"));
    (void)tsr_status_restore(&own, failed);
    tsr_execution_go_by(group, device);
    (void)tsr_plan_run(plan, group, NULL, NULL, NULL, 0, stream, failed);
    return tsr_comm_leave(comm, tsr_status_restore(&own, failed));
}

static tsr_status start_in_group(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                                 void *workspace, size_t bytes, tsr_stream stream)
{
    bool prepared;
    const tsr_group *group = find_group(plan, comm, &prepared);
    if (!prepared)
        return say_unprepared(plan, group, src, dst, stream);
    TSR_TRY(check_idle(group));
    const tsr_scratch scratch = tsr_scratch_divide(plan, tsr_holding_of(group)->scratch);
    tsr_execution *e = scratch.pending;
    e->plan = plan;
    e->group = plan->local ? NULL : group;
    e->bound = scratch.bound;
    e->spans = scratch.spans;
    e->workspace = workspace;
    e->stream = stream;
    src = keep_tensors(plan, src, scratch.tensors);
    dst = keep_tensors(plan, dst, scratch.tensors + plan->count);
    TSR_TRY(start_execution(e, src, dst, bytes, TSR_OK, group->choices));
    tsr_holding_of(group)->pending = plan;
    return TSR_OK;
}

tsr_status tsr_plan_start(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src, const tsr_tensor *dst,
                          void *workspace, size_t bytes, tsr_stream stream)
{
    TSR_TRY(check_call("tsr_plan_start", plan, comm));
    if (!tsr_plan_takes_part(plan))
        return TSR_OK;
    TSR_TRY(tsr_comm_enter(comm, "tsr_plan_start"));
    return tsr_comm_leave(comm, start_in_group(plan, comm, src, dst, workspace, bytes, stream));
}

int tsr_plan_overlaps(const tsr_plan *plan, tsr_comm *comm)
{
    bool prepared;
    if (!comm || !tsr_comm_overlaps(comm))
        return 0;
    if (!plan)
        return 1;
    if (plan->options.mode != TSR_MODE_MESSAGE || plan->local || !tsr_plan_takes_part(plan))
        return 0;
    const tsr_group *const group = find_group(plan, comm, &prepared);
    return prepared && tsr_comm_overlaps(group->comm) && !tsr_native_is_found(plan, group);
}

static tsr_status finish_in_group(const tsr_plan *plan, tsr_comm *comm)
{
    bool prepared;
    const tsr_group *group = find_group(plan, comm, &prepared);
    if (!prepared || tsr_holding_of(group)->pending != plan)
        return tsr_status_set(TSR_ERROR_STATE, "tsr_plan_finish: %s",
                              prepared && tsr_holding_of(group)->pending ? "another plan was started here"
                                                                         : "the plan was not started here");
    tsr_holding_of(group)->pending = NULL;
    return finish_execution(tsr_scratch_divide(plan, tsr_holding_of(group)->scratch).pending);
}

tsr_status tsr_plan_finish(const tsr_plan *plan, tsr_comm *comm)
{
    TSR_TRY(check_call("tsr_plan_finish", plan, comm));
    if (!tsr_plan_takes_part(plan))
        return TSR_OK;
    TSR_TRY(tsr_comm_enter(comm, "tsr_plan_finish"));
    return tsr_comm_leave(comm, finish_in_group(plan, comm));
}
