/* Shapes, offsets, intervals and owners of shards, all read off runs (cut.h). */
#include "placement/ownership.h"

#include "base/checked.h"
#include "mesh/mesh.h"
#include "placement/blocks.h"
#include "placement/meter.h"
#include "placement/walk.h"

#include <tessera/sys/status.h>

#include <string.h>

tsr_placement_kind tsr_layout_kind(const tsr_layout *layout, int mesh_dim)
{
    return tsr_mesh_shape(layout->mesh)[mesh_dim] == 1 ? TSR_REPLICATE : layout->placements[mesh_dim].kind;
}

int64_t tsr_layout_length(const tsr_layout *layout, int dim, const int64_t *coordinate)
{
    tsr_shard_walk walk;
    return tsr_shard_walk_begin(&walk, layout, dim, coordinate);
}

tsr_cut_run tsr_layout_position(const tsr_layout *layout, int dim, const int64_t *coordinate, int64_t at)
{
    tsr_shard_walk walk;
    tsr_shard_walk_begin(&walk, layout, dim, coordinate);
    return tsr_shard_walk_at(&walk, at);
}

tsr_cut_run tsr_layout_owner_along(const tsr_layout *layout, int dim, int64_t at, int64_t *coordinate)
{
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    int64_t length = layout->shape[dim];
    tsr_cut_run run = {0, at, at, length - at};
    for (int i = 0; i < cuts->count; i++) {
        const tsr_cut *cut = &layout->cuts[cuts->mesh_dim[i]];
        const tsr_cut_run inner = tsr_cut_owner(cut, length, run.local, NULL);
        coordinate[cuts->mesh_dim[i]] = inner.part;
        length = i + 1 < cuts->count ? tsr_cut_size(cut, length, inner.part) : 0;
        run.local = inner.local;
        run.length = tsr_min_i64(run.length, inner.length);
    }
    return run;
}

int tsr_layout_local_shape(const tsr_layout *layout, const int64_t *coordinate, int64_t *shape)
{
    if (!coordinate) {
        shape[0] = 0;
        return 1;
    }
    for (int dim = 0; dim < layout->ndim; dim++)
        shape[dim] = tsr_layout_length(layout, dim, coordinate);
    return layout->ndim;
}

/* The given coordinate, checked; for NULL this rank's own. `*inside` is 0 if this rank is not in
 * the mesh. */
static tsr_status pick_coordinate(const tsr_layout *layout, const int64_t *given, int64_t *coordinate, int *inside)
{
    if (!given)
        return tsr_mesh_coordinate(layout->mesh, coordinate, inside);
    for (int i = 0; i < layout->mesh_ndim; i++) {
        const int64_t size = tsr_mesh_shape(layout->mesh)[i];
        if (given[i] < 0 || given[i] >= size)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "coordinate %lld of mesh dim %d is out of range: it has size %lld",
                                  (long long)given[i], i, (long long)size);
        coordinate[i] = given[i];
    }
    *inside = 1;
    return TSR_OK;
}

tsr_status tsr_layout_local(const tsr_layout *layout, const int64_t *given, int64_t *shape, int64_t *offset)
{
    if (!layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_local: layout is NULL");
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(pick_coordinate(layout, given, coordinate, &inside));
    for (int dim = 0; dim < layout->ndim; dim++) {
        const int64_t length = inside ? tsr_layout_length(layout, dim, coordinate) : 0;
        if (shape)
            shape[dim] = length;
        if (offset)
            offset[dim] = length > 0 ? tsr_layout_position(layout, dim, coordinate, 0).begin : layout->shape[dim];
    }
    return TSR_OK;
}

/* How many intervals a shard has along `dim` if that follows from its blocks; -1: they must be
 * counted. */
static int64_t count_intervals(const tsr_layout *layout, int dim)
{
    const int64_t blocks = tsr_layout_blocks(layout, dim);
    bool inside[TSR_MAX_DIMS];
    tsr_block_share share;
    if (blocks == 1 || !tsr_layout_goes_by_blocks(layout, dim, blocks, inside, &share))
        return -1;
    return share.inside == layout->shape[dim] / blocks ? 1 : share.blocks;
}

tsr_status tsr_layout_intervals(const tsr_layout *layout, const int64_t *given, int dim, tsr_interval *buffer,
                                size_t capacity, size_t *count)
{
    if (!layout || !count || (!buffer && capacity > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_intervals: %s is NULL",
                              !layout  ? "layout"
                              : !count ? "count"
                                       : "buffer");
    if (dim < 0 || dim >= layout->ndim)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_intervals: dim %d, but the tensor has %d dims", dim,
                              layout->ndim);
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(pick_coordinate(layout, given, coordinate, &inside));
    tsr_shard_walk walk;
    const int64_t length = inside ? tsr_shard_walk_begin(&walk, layout, dim, coordinate) : 0;
    tsr_meter meter = tsr_meter_of("tsr_layout_intervals", layout, NULL);
    const int64_t known = length > 0 ? count_intervals(layout, dim) : 0;
    size_t found = 0;
    int64_t end = -1;
    for (int64_t at = 0; at < length && (known < 0 || found <= capacity);) {
        const tsr_cut_run run = tsr_shard_walk_at(&walk, at);
        const bool touches = run.begin == end;
        found += !touches;
        end = run.begin + run.length;
        if (found <= capacity) {
            tsr_interval *last = &buffer[found - 1];
            last->begin = touches ? last->begin : run.begin;
            last->end = end;
        }
        at += run.length;
        TSR_TRY(tsr_meter_take_on_way(&meter, 1, 0, at, length));
    }
    *count = known < 0 ? found : (size_t)known;
    return TSR_OK;
}

tsr_status tsr_layout_local_bytes(const tsr_layout *layout, const int64_t *given, size_t *bytes)
{
    if (!layout || !bytes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_local_bytes: %s is NULL", !layout ? "layout" : "bytes");
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(pick_coordinate(layout, given, coordinate, &inside));
    size_t product = inside ? layout->element_bytes : 0;
    for (int dim = 0; inside && dim < layout->ndim; dim++)
        product *= (size_t)tsr_layout_length(layout, dim, coordinate);
    *bytes = product;
    return TSR_OK;
}
