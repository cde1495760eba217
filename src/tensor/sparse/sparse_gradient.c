/* The gradient of an embedding as ids and rows. */
#include "base/checked.h"
#include "mesh/mesh.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "placement/walk.h"
#include "tensor/dtensor.h"

#include <tessera/sparse.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static const char call[] = "tsr_sparse_gradient";

static tsr_status check_shapes(const tsr_layout *ids, const tsr_layout *dout)
{
    char have[TSR_SHAPE_TEXT], want[TSR_SHAPE_TEXT];
    if (ids->dtype != TSR_I32 && ids->dtype != TSR_I64)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: ids is of %s: i32 and i64 are fine", call,
                              tsr_dtype_name(ids->dtype));
    if (!tsr_mesh_equal(ids->mesh, dout->mesh))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dout is on another mesh than ids", call);
    bool same = dout->ndim == ids->ndim + 1;
    for (int dim = 0; dim < ids->ndim; dim++)
        same = same && dout->shape[dim] == ids->shape[dim];
    if (same)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dout has shape %s, and ids %s: dout has the dims of ids, then one of features", call,
                          tsr_shape_print(dout->ndim, dout->shape, have), tsr_shape_print(ids->ndim, ids->shape, want));
}

/* True if a mesh dim cuts the same dim of ids and dout, or none, or dout has terms there. */
static bool fits(const tsr_layout *ids, const tsr_layout *dout, int mesh_dim)
{
    const tsr_placement *const a = &ids->placements[mesh_dim], *const b = &dout->placements[mesh_dim];
    if (tsr_mesh_shape(ids->mesh)[mesh_dim] == 1)
        return true;
    if (b->kind == TSR_PARTIAL)
        return a->kind == TSR_REPLICATE && b->op == TSR_SUM;
    return a->kind == b->kind && (a->kind != TSR_SHARD || a->dim == b->dim);
}

/* Compares the owners of all indices of a dim, run by run; the walks have begun. */
static bool owners_agree(tsr_owner_walk *a, tsr_owner_walk *b)
{
    const int64_t size = a->layout->shape[a->dim];
    for (int64_t at = 0; at < size;) {
        int64_t first[TSR_MAX_DIMS] = {0}, second[TSR_MAX_DIMS] = {0};
        const tsr_cut_run x = tsr_owner_walk_at(a, at, first), y = tsr_owner_walk_at(b, at, second);
        if (x.local + (at - x.begin) != y.local + (at - y.begin) || memcmp(first, second, sizeof first) != 0)
            return false;
        at = tsr_min_i64(x.begin + x.length, y.begin + y.length);
    }
    return true;
}

/* Finds whether each rank has the same indices of a dim of ids and dout. */
static tsr_status compare_dim(const tsr_layout *ids, const tsr_layout *dout, int dim, bool *same)
{
    tsr_owner_walk a, b;
    tsr_status status = tsr_owner_walk_begin(&a, ids, dim);
    if (status == TSR_OK) {
        status = tsr_owner_walk_begin(&b, dout, dim);
        *same = status == TSR_OK && owners_agree(&a, &b);
        tsr_owner_walk_end(&b);
    }
    tsr_owner_walk_end(&a);
    return status;
}

/* The first mesh dim that cuts `dim` in two ways; -1: the cuts have another order. */
static int find_other_cut(const tsr_layout *ids, const tsr_layout *dout, int dim)
{
    for (int i = 0; i < ids->mesh_ndim; i++)
        if (tsr_mesh_shape(ids->mesh)[i] > 1 && tsr_layout_kind(ids, i) == TSR_SHARD && ids->placements[i].dim == dim &&
            !tsr_placement_same(&ids->placements[i], &dout->placements[i]))
            return i;
    return -1;
}

static tsr_status refuse_cut(const tsr_layout *ids, const tsr_layout *dout, int mesh_dim, int dim)
{
    char text[512], other[512], where[64];
    if (mesh_dim >= 0)
        snprintf(where, sizeof where, "along mesh dim %d they are not cut alike", mesh_dim);
    else
        snprintf(where, sizeof where, "the cuts of dim %d have another order", dim);
    return tsr_status_set(
        TSR_ERROR_UNSUPPORTED, "%s: ids is %s, and dout %s: %s; redistribute dout to the placements of ids", call,
        tsr_layout_describe(ids, text, sizeof text), tsr_layout_describe(dout, other, sizeof other), where);
}

/* Placements may differ in their words, if each rank has the same. */
static tsr_status check_placements(const tsr_layout *ids, const tsr_layout *dout)
{
    for (int i = 0; i < ids->mesh_ndim; i++)
        if (!fits(ids, dout, i))
            return refuse_cut(ids, dout, i, 0);
    for (int dim = 0; dim < ids->ndim; dim++) {
        bool same = true;
        if (memcmp(&ids->dims[dim], &dout->dims[dim], sizeof(tsr_dim_cuts)) != 0 || find_other_cut(ids, dout, dim) >= 0)
            TSR_TRY(compare_dim(ids, dout, dim, &same));
        if (!same)
            return refuse_cut(ids, dout, find_other_cut(ids, dout, dim), dim);
    }
    return TSR_OK;
}

static tsr_status check_local(const char *name, const tsr_tensor *local)
{
    if (tsr_tensor_is_contiguous(local))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: the local tensor of %s is not contiguous", call, name);
}

/* True if this rank brings the rows that it has: outside of the mesh none does, and of ranks that
 * have the same rows one. */
static bool brings(const tsr_dtensor *ids, const tsr_layout *dout)
{
    int64_t coordinate[TSR_MAX_DIMS];
    if (!tsr_mesh_locate(dout->mesh, tsr_comm_rank(ids->comm), coordinate))
        return false;
    for (int i = 0; i < dout->mesh_ndim; i++)
        if (dout->placements[i].kind == TSR_REPLICATE && coordinate[i] > 0)
            return false;
    return true;
}

tsr_status tsr_sparse_gradient(const tsr_dtensor *ids, const tsr_dtensor *dout, tsr_tensor *named, tsr_tensor *rows)
{
    if (!ids || !dout || !named || !rows)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call,
                              !ids     ? "ids"
                              : !dout  ? "dout"
                              : !named ? "named"
                                       : "rows");
    TSR_TRY(check_shapes(ids->layout, dout->layout));
    TSR_TRY(check_placements(ids->layout, dout->layout));
    TSR_TRY(check_local("ids", &ids->local));
    TSR_TRY(check_local("dout", &dout->local));
    const bool some = brings(ids, dout->layout);
    int64_t count = some ? 1 : 0;
    for (int dim = 0; dim < ids->local.ndim && some; dim++)
        count *= ids->local.shape[dim];
    const int64_t shape[] = {count, dout->layout->shape[dout->layout->ndim - 1]};
    *named = tsr_tensor_contiguous(ids->local.data, ids->layout->dtype, 1, shape);
    *rows = tsr_tensor_contiguous(dout->local.data, dout->layout->dtype, 2, shape);
    named->device = ids->local.device;
    rows->device = dout->local.device;
    return TSR_OK;
}
