/* Views of rows: a dtensor over a range of another one's rows, in the same memory. */
#include "base/memory/memory.h"
#include "mesh/mesh.h"
#include "placement/layout.h"
#include "placement/ownership.h"
#include "placement/print.h"
#include "placement/walk.h"
#include "tensor/dtensor.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>

#include <string.h>

#define CALL "tsr_dtensor_rows"

/* The rows [begin, end) of a dtensor. */
typedef struct range {
    const tsr_layout *layout; /* the dtensor's */
    int64_t begin, end;
} range;

static tsr_status refuse_rows(const range *r, const char *why)
{
    char text[512];
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          CALL ": no placement says who has rows %lld to %lld of %s: %s; redistribute it to S(0) or R "
                               "first",
                          (long long)r->begin, (long long)r->end, tsr_layout_describe(r->layout, text, sizeof text),
                          why);
}

static tsr_status check_range(const tsr_dtensor *x, int64_t begin, int64_t end, const void *out)
{
    if (!x || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": %s is NULL", !x ? "x" : "out");
    if (x->layout->ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": x is a scalar, which has no rows");
    if (begin >= 0 && begin <= end && end <= x->layout->shape[0])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, CALL ": rows %lld to %lld, but x has rows 0 to %lld", (long long)begin,
                          (long long)end, (long long)x->layout->shape[0]);
}

/* Counts each part's rows in the range, in `sizes`, one for each part of the cut. `*ordered`: no
 * part has rows behind those of a higher part. */
static tsr_status count_rows(const range *r, int mesh_dim, int64_t *sizes, bool *ordered)
{
    tsr_owner_walk walk;
    int64_t coordinate[TSR_MAX_DIMS], highest = 0;
    *ordered = true;
    const tsr_status status = tsr_owner_walk_begin(&walk, r->layout, 0);
    for (int64_t at = r->begin; status == TSR_OK && *ordered && at < r->end;) {
        const tsr_cut_run run = tsr_owner_walk_at(&walk, at, coordinate);
        const int64_t part = coordinate[mesh_dim], length = run.length < r->end - at ? run.length : r->end - at;
        *ordered = part >= highest;
        highest = part;
        sizes[part] += length;
        at += length;
    }
    tsr_owner_walk_end(&walk);
    return status;
}

/* True if `placement` cuts the rows of the range into these numbers. */
static bool comes_to(const range *r, int mesh_dim, const tsr_placement *placement, const int64_t *sizes)
{
    const tsr_cut cut = {.parts = tsr_mesh_shape(r->layout->mesh)[mesh_dim],
                         .balanced = placement->balanced,
                         .interleave = 1,
                         .unit = placement->unit > 1 ? placement->unit : 1};
    bool same = true;
    for (int64_t part = 0; same && part < cut.parts; part++)
        same = tsr_cut_size(&cut, r->end - r->begin, part) == sizes[part];
    return same;
}

/* Changes the placement of the mesh dim that cuts dim 0. `sizes` is kept in it perhaps. */
static void choose_placement(const range *r, int mesh_dim, const int64_t *sizes, tsr_placement *placement)
{
    const tsr_placement own = *placement, plain = tsr_shard(0);
    const bool deals = own.interleave <= 1 && own.block_count == 0 && own.size_count == 0;
    *placement = plain;
    placement->order = own.order;
    if (deals && comes_to(r, mesh_dim, &own, sizes)) {
        *placement = own;
    } else if (!comes_to(r, mesh_dim, &plain, sizes)) {
        placement->sizes = sizes;
        placement->size_count = (size_t)tsr_mesh_shape(r->layout->mesh)[mesh_dim];
    }
}

/* The layout's placements. A mesh dim of size 1 that cuts dim 0 keeps all rows, but its lists would
 * not sum to the rows of a view, so it gets none. */
static void take_placements(const tsr_layout *layout, tsr_placement *out)
{
    memcpy(out, layout->placements, sizeof layout->placements);
    for (int i = 0; i < layout->mesh_ndim; i++) {
        const int order = out[i].order;
        if (tsr_layout_kind(layout, i) != TSR_SHARD && out[i].kind == TSR_SHARD && out[i].dim == 0) {
            out[i] = tsr_shard(0);
            out[i].order = order;
        }
    }
}

static tsr_status make_layout(const range *r, const tsr_placement *placements, tsr_layout **out)
{
    int64_t shape[TSR_MAX_DIMS];
    memcpy(shape, r->layout->shape, sizeof shape);
    shape[0] = r->end - r->begin;
    return tsr_layout_create(r->layout->mesh, placements, r->layout->ndim, shape, r->layout->dtype, out);
}

static tsr_status make_cut_layout(const range *r, int mesh_dim, int64_t *sizes, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    bool ordered;
    TSR_TRY(count_rows(r, mesh_dim, sizes, &ordered));
    if (!ordered)
        return refuse_rows(r, "parts take turns in them");
    take_placements(r->layout, placements);
    choose_placement(r, mesh_dim, sizes, &placements[mesh_dim]);
    return make_layout(r, placements, out);
}

static tsr_status make_whole_layout(const range *r, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    take_placements(r->layout, placements);
    return make_layout(r, placements, out);
}

static tsr_status lay_out(const range *r, tsr_layout **out)
{
    const tsr_dim_cuts *cuts = &r->layout->dims[0];
    if (r->end - r->begin == r->layout->shape[0]) {
        *out = tsr_layout_retain((tsr_layout *)r->layout);
        return TSR_OK;
    }
    if (cuts->count == 0)
        return make_whole_layout(r, out);
    if (cuts->count > 1)
        return refuse_rows(r, "several mesh dims cut dim 0");
    tsr_context *context = r->layout->context;
    const size_t parts = (size_t)tsr_mesh_shape(r->layout->mesh)[cuts->mesh_dim[0]];
    void *sizes;
    TSR_TRY(tsr_allocate_zeroed(context, parts * sizeof(int64_t), &sizes));
    const tsr_status status = make_cut_layout(r, cuts->mesh_dim[0], sizes, out);
    tsr_release(context, sizes);
    return status;
}

/* How many of this rank's rows lie before global row `row`. */
static int64_t rows_before(const tsr_layout *layout, const int64_t *coordinate, int64_t row)
{
    tsr_shard_walk walk;
    int64_t at = 0;
    const int64_t length = tsr_shard_walk_begin(&walk, layout, 0, coordinate);
    while (at < length) {
        const tsr_cut_run run = tsr_shard_walk_at(&walk, at);
        if (run.begin + run.length >= row)
            return at + (row > run.begin ? row - run.begin : 0);
        at += run.length;
    }
    return length;
}

/* The rows that this rank has of the range; an empty tensor on a rank outside the mesh. */
static tsr_tensor view_local(const tsr_dtensor *x, const range *r)
{
    tsr_tensor local = x->local;
    int64_t coordinate[TSR_MAX_DIMS];
    if (!tsr_mesh_locate(r->layout->mesh, tsr_comm_rank(x->comm), coordinate))
        return local;
    const int64_t first = rows_before(r->layout, coordinate, r->begin);
    local.shape[0] = rows_before(r->layout, coordinate, r->end) - first;
    if (local.data)
        local.data = (char *)local.data + (size_t)(first * local.strides[0]) * r->layout->element_bytes;
    return local;
}

tsr_status tsr_dtensor_rows(const tsr_dtensor *x, int64_t begin, int64_t end, tsr_dtensor **out)
{
    TSR_TRY(check_range(x, begin, end, out));
    TSR_TRY(tsr_check_communicates(x->layout->mesh, CALL));
    const range r = {x->layout, begin, end};
    tsr_layout *layout;
    TSR_TRY(lay_out(&r, &layout));
    const tsr_tensor local = view_local(x, &r);
    const tsr_status status = tsr_dtensor_wrap(layout, &local, x->base ? x->base : x, out);
    tsr_layout_destroy(layout);
    return status;
}
