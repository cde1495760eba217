#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/options.h"
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "comm/core/traits.h"
#include "device/allocation.h"
#include "device/driver.h"
#include "placement/layout.h"
#include "redistribute/execute/prepare.h"
#include "tensor/dtensor.h"
#include "tensor/sync/sync_state.h"

#include <tessera/sys/status.h>

#include <stdio.h>

#define CREATE "tsr_sync_create"

/* Tensors in the stage begin at multiples of this. */
enum { STAGE_ALIGNMENT = 64 };

static tsr_status allocate_block(const tsr_sync *sync, size_t bytes, tsr_sync_memory_block *out)
{
    *out = (tsr_sync_memory_block){NULL, bytes, !sync->device.driver && bytes > 0 && tsr_comm_shares_some(sync->comm)};
    return out->shared ? tsr_comm_alloc_shared(sync->comm, bytes, &out->data)
                       : tsr_device_allocate(sync->context, sync->device, bytes, &out->data);
}

static void release_block(const tsr_sync *sync, const tsr_sync_memory_block *block)
{
    if (block->shared && block->data)
        tsr_comm_free(sync->comm, block->data, block->bytes);
    else if (!block->shared)
        tsr_device_release(sync->context, sync->device, block->data, block->bytes);
}

void tsr_sync_destroy(tsr_sync *sync)
{
    if (!sync)
        return;
    tsr_context *const context = sync->context;
    release_block(sync, &sync->workspace);
    release_block(sync, &sync->stage);
    tsr_plan_destroy(sync->plan);
    for (size_t i = 0; sync->pairs && i < sync->count; i++) {
        tsr_layout_destroy((tsr_layout *)sync->pairs[i].to);
        tsr_layout_destroy((tsr_layout *)sync->pairs[i].from);
    }
    tsr_release(context, sync->given);
    tsr_release(context, sync->tensors);
    tsr_release(context, sync->pairs);
    tsr_device_driver_release(sync->device.driver);
    tsr_mesh_destroy(sync->keeper);
    tsr_release(context, sync);
    tsr_context_destroy(context);
}

/* `layout` with another dtype; the caller owns `*out`. */
static tsr_status layout_as(const tsr_layout *layout, tsr_dtype dtype, tsr_layout **out)
{
    if (layout->dtype != dtype)
        return tsr_layout_create(layout->mesh, layout->placements, layout->ndim, layout->shape, dtype, out);
    *out = tsr_layout_retain((tsr_layout *)layout);
    return TSR_OK;
}

/* Plans with the layouts of `moved`, room for two for each pair: sources, then destinations. */
static tsr_status plan_with(tsr_sync *sync, const tsr_sync_options *given, tsr_layout **moved)
{
    const size_t count = sync->count;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = given->mode;
    options.max_workspace = given->max_workspace;
    options.no_split = !tsr_comm_can_split(sync->comm);
    for (size_t i = 0; i < count; i++) {
        TSR_TRY(layout_as(sync->pairs[i].from, sync->pairs[i].wire, &moved[i]));
        TSR_TRY(layout_as(sync->pairs[i].to, sync->pairs[i].wire, &moved[count + i]));
    }
    return tsr_plan_create_for(CREATE, count, (const tsr_layout *const *)moved,
                               (const tsr_layout *const *)moved + count, &options, &sync->plan);
}

static tsr_status make_plan(tsr_sync *sync, const tsr_sync_options *options)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(sync->context, 2 * sync->count, sizeof(tsr_layout *), &memory));
    tsr_layout **const moved = memory;
    const tsr_status status = plan_with(sync, options, moved);
    for (size_t i = 0; i < 2 * sync->count; i++)
        tsr_layout_destroy(moved[i]);
    tsr_release(sync->context, memory);
    return status;
}

/* Describes the tensor of a side of a move that this rank converts, without data; false if it
 * converts none there. */
static bool describe_staged(const tsr_sync *sync, size_t move, bool destination, tsr_tensor *out)
{
    const tsr_item *const item = &sync->plan->items[move];
    const tsr_sync_pair *const pair = &sync->pairs[move];
    if (!(destination ? item->in_dst : item->in_src) || (destination ? pair->to : pair->from)->dtype == pair->wire)
        return false;
    *out = tsr_tensor_contiguous(NULL, pair->wire, pair->to->ndim, destination ? item->dst_shape : item->src_shape);
    out->device = sync->device;
    return true;
}

/* Calls with `stage` NULL only find the bytes that tensors in the stage take. */
static tsr_status place_staged(tsr_sync *sync, char *stage, size_t *bytes)
{
    int64_t end = 0, count;
    for (size_t i = 0; i < 2 * sync->count; i++) {
        tsr_tensor staged;
        if (!describe_staged(sync, i % sync->count, i >= sync->count, &staged))
            continue;
        staged.data = stage ? stage + end : NULL;
        sync->tensors[i] = staged;
        TSR_TRY(tsr_tensor_count(&staged, &count));
        if (!tsr_multiply(count, (int64_t)tsr_dtype_bytes(staged.dtype), &count) || !tsr_add_sizes(end, count, &end) ||
            !tsr_add_sizes(end, STAGE_ALIGNMENT - 1, &end))
            return tsr_status_set(TSR_ERROR_MEMORY, CREATE ": elements that are converted take more than 2^63 bytes");
        end -= end % STAGE_ALIGNMENT;
    }
    *bytes = (size_t)end;
    return TSR_OK;
}

static tsr_status allocate_memory(tsr_sync *sync)
{
    void *memory;
    size_t bytes;
    TSR_TRY(tsr_allocate_array(sync->context, 2 * sync->count, sizeof(tsr_tensor), &memory));
    sync->tensors = memory;
    TSR_TRY(tsr_allocate_array(sync->context, 2 * sync->count, sizeof(tsr_tensor), &memory));
    sync->given = memory;
    TSR_TRY(place_staged(sync, NULL, &bytes));
    TSR_TRY(allocate_block(sync, bytes, &sync->stage));
    TSR_TRY(place_staged(sync, sync->stage.data, &bytes));
    return allocate_block(sync, tsr_plan_workspace_bytes(sync->plan), &sync->workspace);
}

static tsr_status make_moves(tsr_sync *sync, const tsr_sync_options *options)
{
    TSR_TRY(make_plan(sync, options));
    return allocate_memory(sync);
}

/* What a rank brings to the comparison. */
typedef struct told {
    const tsr_sync_lists *lists;
    uint64_t fingerprint;
} told;

static void describe_sync(const void *arg, char *text, size_t capacity)
{
    const told *const t = arg;
    snprintf(text, capacity, "a sync of %zu sources and %zu destinations (names, shapes and dtypes %016llx)",
             t->lists->source_count, t->lists->destination_count, (unsigned long long)t->fingerprint);
}

static tsr_status pair_up(tsr_sync *sync, const tsr_sync_lists *lists)
{
    void *memory;
    if (lists->destination_count == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "destination_count is 0: a sync has at least one destination");
    TSR_TRY(tsr_allocate_array(sync->context, lists->destination_count, sizeof(tsr_sync_pair), &memory));
    const tsr_status status = tsr_sync_pair_up(sync->context, lists, memory);
    if (status != TSR_OK) {
        tsr_release(sync->context, memory);
        return status;
    }
    sync->pairs = memory;
    sync->count = lists->destination_count;
    sync->source_count = lists->source_count;
    for (size_t i = 0; i < sync->count; i++) {
        tsr_layout_retain((tsr_layout *)sync->pairs[i].from);
        tsr_layout_retain((tsr_layout *)sync->pairs[i].to);
    }
    return TSR_OK;
}

/* The part of a rank before it compares with the others. */
static tsr_status begin(tsr_comm *comm, const tsr_sync_options *given, tsr_sync_options *options, tsr_sync_lists *lists,
                        tsr_sync **out)
{
    const int64_t ranks = tsr_comm_size(comm);
    void *memory;
    TSR_TRY(tsr_options_read(CREATE, given, options, sizeof *options));
    lists->rule_count = options->rule_count;
    lists->rules = options->rules;
    TSR_TRY(tsr_allocate_zeroed(tsr_comm_context(comm), sizeof **out, &memory));
    tsr_sync *const sync = *out = memory;
    sync->context = tsr_context_retain(tsr_comm_context(comm));
    sync->comm = comm;
    sync->device = (tsr_device){tsr_device_driver_retain(options->device.driver), options->device.index};
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &sync->keeper));
    if (!tsr_host_is_meant(sync->device, NULL))
        return tsr_refuse_host(CREATE, sync->device, NULL);
    return tsr_name_call(CREATE, pair_up(sync, lists));
}

static tsr_status create(tsr_comm *comm, tsr_sync_lists *lists, const tsr_sync_options *given, bool has_out,
                         tsr_sync **made)
{
    tsr_sync_options options = TSR_SYNC_OPTIONS_INIT;
    const tsr_group *group;
    told t = {lists, 0};
    tsr_status status = has_out ? begin(comm, given, &options, lists, made) : tsr_comm_check_out(NULL, CREATE);
    if (status == TSR_OK)
        t.fingerprint = tsr_sync_fingerprint(lists, (*made)->pairs);
    TSR_TRY(tsr_comm_agree(comm, t.fingerprint, status, describe_sync, &t));
    status = make_moves(*made, &options);
    return tsr_plan_prepare_with((*made)->plan, comm, status, &group);
}

tsr_status tsr_sync_create(tsr_comm *comm, size_t source_count, const tsr_sync_tensor *sources,
                           size_t destination_count, const tsr_sync_tensor *destinations,
                           const tsr_sync_options *options, tsr_sync **out)
{
    tsr_sync_lists lists = {source_count, destination_count, sources, destinations, 0, NULL};
    tsr_sync *made = NULL;
    TSR_TRY(tsr_comm_check(comm, CREATE));
    TSR_TRY(tsr_comm_enter(comm, CREATE));
    const tsr_status status = tsr_comm_leave(comm, create(comm, &lists, options, out != NULL, &made));
    if (status == TSR_OK)
        *out = made;
    else
        tsr_sync_destroy(made);
    return status;
}

tsr_status tsr_sync_source_of(const tsr_sync *sync, size_t destination, size_t *source)
{
    if (!sync || !source)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_sync_source_of: %s is NULL", !sync ? "sync" : "source");
    if (destination >= sync->count)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_sync_source_of: there is no destination %zu among %zu",
                              destination, sync->count);
    *source = sync->pairs[destination].source;
    return TSR_OK;
}

const tsr_plan *tsr_sync_plan(const tsr_sync *sync)
{
    return sync ? sync->plan : NULL;
}

size_t tsr_sync_memory(const tsr_sync *sync)
{
    return sync ? sync->stage.bytes + sync->workspace.bytes : 0;
}
