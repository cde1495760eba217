/* The gradient of an embedding as ids and rows. */
#include "mesh/mesh.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "tensor/dtensor.h"

#include <tessera/sparse.h>
#include <tessera/sys/status.h>

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

/* True if ids and dout are cut alike along a mesh dim, or both whole, or dout has terms there. */
static bool fits(const tsr_layout *ids, const tsr_layout *dout, int mesh_dim)
{
    const tsr_placement *const a = &ids->placements[mesh_dim], *const b = &dout->placements[mesh_dim];
    if (tsr_mesh_shape(ids->mesh)[mesh_dim] == 1)
        return true;
    if (b->kind == TSR_PARTIAL)
        return a->kind == TSR_REPLICATE && b->op == TSR_SUM;
    return tsr_placement_same(a, b);
}

static tsr_status check_placements(const tsr_layout *ids, const tsr_layout *dout)
{
    char text[512], other[512];
    for (int i = 0; i < ids->mesh_ndim; i++)
        if (!fits(ids, dout, i))
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "%s: ids is %s, and dout %s: along mesh dim %d they are not cut alike; redistribute "
                                  "dout to the placements of ids",
                                  call, tsr_layout_describe(ids, text, sizeof text),
                                  tsr_layout_describe(dout, other, sizeof other), i);
    for (int dim = 0; dim < ids->ndim; dim++)
        if (memcmp(&ids->dims[dim], &dout->dims[dim], sizeof(tsr_dim_cuts)) != 0)
            return tsr_status_set(
                TSR_ERROR_UNSUPPORTED,
                "%s: ids is %s, and dout %s: the cuts of dim %d have another order; redistribute dout "
                "to the placements of ids",
                call, tsr_layout_describe(ids, text, sizeof text), tsr_layout_describe(dout, other, sizeof other), dim);
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
