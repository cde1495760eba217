#include "base/options.h"
#include "comm/core/comm.h"
#include "device/allocation.h"
#include "placement/layout.h"
#include "redistribute/execute/execution.h"
#include "redistribute/execute/prepare.h"
#include "tensor/dtensor.h"

#include <tessera/sys/status.h>

static tsr_status check_call(const char *call, const tsr_tensor *global, const tsr_mesh *mesh, bool has_placements,
                             bool has_out)
{
    if (global && has_placements && has_out)
        return tsr_check_communicates(mesh, call);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call,
                          !global           ? "global"
                          : !has_placements ? "placements"
                                            : "out");
}

static tsr_status check_source(const tsr_mesh *mesh, int source_rank)
{
    const int ranks = tsr_comm_size(tsr_mesh_comm(mesh));
    if (source_rank >= -1 && source_rank < ranks)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_distribute_options.source_rank is %d: a rank from 0 to %d is needed, or -1 for a tensor "
                          "that every rank has",
                          source_rank, ranks - 1);
}

/* A layout with the whole tensor on every rank of `mesh`; the caller owns it. */
static tsr_status replicated(const tsr_mesh *mesh, const tsr_tensor *global, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        placements[i] = tsr_replicate();
    return tsr_layout_create(mesh, placements, global->ndim, global->shape, global->dtype, out);
}

/* Every rank has the tensor, so a plan that does not communicate copies this rank's shard out of
 * it. */
static tsr_status cut_shard(const tsr_tensor *global, tsr_dtensor *y)
{
    tsr_layout *src;
    TSR_TRY(replicated(y->layout->mesh, global, &src));
    tsr_plan *plan = NULL;
    tsr_status status = tsr_plan_create(src, y->layout, NULL, &plan);
    if (status == TSR_OK)
        status = tsr_plan_run(plan, NULL, global, &y->local, NULL, 0, NULL, TSR_OK);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(src);
    return status;
}

/* A plan from a mesh of `source_rank` alone to `dst`. */
static tsr_status plan_scatter(const tsr_tensor *global, int source_rank, const tsr_layout *dst, tsr_plan **plan)
{
    tsr_comm *comm = tsr_mesh_comm(dst->mesh);
    const int64_t one = 1, rank = source_rank;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_create(comm, 1, &one, NULL, &rank, &mesh));
    tsr_layout *src = NULL;
    tsr_status status = replicated(mesh, global, &src);
    if (status == TSR_OK)
        status = tsr_plan_create(src, dst, NULL, plan);
    tsr_layout_destroy(src);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Checks this rank's tensor. A rank whose `global` is not read needs no data. */
static tsr_status check_data(const char *call, const tsr_tensor *global, const tsr_comm *comm, int source_rank)
{
    if (!tsr_host_is_meant(global->device, NULL))
        return tsr_name_call(call, tsr_refuse_host("global", global->device, NULL));
    int64_t count = 0;
    TSR_TRY(tsr_tensor_count(global, &count));
    if (global->data || count == 0 || (source_rank >= 0 && source_rank != tsr_comm_rank(comm)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: global has no data on rank %d", call, tsr_comm_rank(comm));
}

/* Collective: moves the tensor from `source_rank` to `y`. `local` is this rank's status so far;
 * after a failure the rank takes part as failed, and `dst` and `y` may be NULL. */
static tsr_status scatter_tensor(tsr_comm *comm, const tsr_tensor *global, int source_rank, const tsr_layout *dst,
                                 tsr_dtensor *y, tsr_status local)
{
    tsr_context *context = tsr_comm_context(comm);
    tsr_plan *plan = NULL;
    void *workspace = NULL;
    if (local == TSR_OK)
        local = plan_scatter(global, source_rank, dst, &plan);
    const size_t bytes = plan ? tsr_plan_workspace_bytes(plan) : 0;
    if (local == TSR_OK)
        local = tsr_device_allocate(context, global->device, bytes, &workspace);
    const tsr_group *group = NULL;
    tsr_status status = tsr_plan_prepare_with(plan, comm, local, &group);
    if (status == TSR_OK && group)
        status = tsr_plan_run(plan, group, tsr_comm_rank(comm) == source_rank ? global : NULL, &y->local, workspace,
                              bytes, NULL, TSR_OK);
    tsr_device_release(context, global->device, workspace, bytes);
    tsr_plan_destroy(plan);
    return status;
}

static tsr_status scatter_together(const char *call, tsr_comm *comm, const tsr_tensor *global, int source_rank,
                                   const tsr_layout *dst, tsr_dtensor *y, tsr_status local)
{
    TSR_TRY(tsr_comm_enter(comm, call));
    return tsr_comm_leave(comm, scatter_tensor(comm, global, source_rank, dst, y, local));
}

/* A distribution of `global` to `layout`. `status` is this rank's status so far; after a failure
 * `layout` is NULL. source_rank -1: every rank has the tensor. */
typedef struct distribution {
    const char *call;
    const tsr_tensor *global;
    tsr_comm *comm;
    tsr_layout *layout;
    int source_rank;
    tsr_status status;
} distribution;

static tsr_status distribute(const distribution *d, tsr_dtensor **out)
{
    tsr_dtensor *y = NULL;
    tsr_status status = d->status;
    if (status == TSR_OK)
        status = check_data(d->call, d->global, d->comm, d->source_rank);
    if (status == TSR_OK)
        status = tsr_dtensor_create(d->layout, d->global->device, &y);
    if (d->source_rank >= 0)
        status = scatter_together(d->call, d->comm, d->global, d->source_rank, d->layout, y, status);
    else if (status == TSR_OK)
        status = cut_shard(d->global, y);
    if (y) {
        /* From here on the caller may change `global` on any stream, so the copy must be done. */
        const tsr_device_ops ops = tsr_device_resolve(d->layout->context, d->global->device);
        status = tsr_device_settle(&ops, NULL, status);
    }
    tsr_layout_destroy(d->layout);
    if (status != TSR_OK) {
        tsr_dtensor_destroy(y);
        return status;
    }
    *out = y;
    return TSR_OK;
}

tsr_status tsr_distribute_tensor(const tsr_tensor *global, const tsr_mesh *mesh, const tsr_placement *placements,
                                 const tsr_distribute_options *given, tsr_dtensor **out)
{
    tsr_distribute_options options = TSR_DISTRIBUTE_OPTIONS_INIT;
    TSR_TRY(tsr_options_read("tsr_distribute_tensor", given, &options, sizeof options));
    TSR_TRY(check_call("tsr_distribute_tensor", global, mesh, placements, out));
    TSR_TRY(check_source(mesh, options.source_rank));
    distribution d = {"tsr_distribute_tensor", global, tsr_mesh_comm(mesh), NULL, options.source_rank, TSR_OK};
    d.status = tsr_layout_create(mesh, placements, global->ndim, global->shape, global->dtype, &d.layout);
    return d.status == TSR_ERROR_ARGUMENT ? d.status : distribute(&d, out);
}

tsr_status tsr_distribute(const tsr_tensor *global, const tsr_mesh *mesh, const char *placements, tsr_dtensor **out)
{
    TSR_TRY(check_call("tsr_distribute", global, mesh, placements, out));
    distribution d = {"tsr_distribute", global, tsr_mesh_comm(mesh), NULL, -1, TSR_OK};
    TSR_TRY(tsr_name_call("tsr_distribute",
                          tsr_layout_parse(mesh, placements, global->ndim, global->shape, global->dtype, &d.layout)));
    return distribute(&d, out);
}
