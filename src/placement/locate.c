/* Where global elements lie: their owners, and their places there. */
#include "base/checked.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/walk.h"

#include <tessera/sys/status.h>

static tsr_status check_index(const tsr_layout *layout, const int64_t *index)
{
    for (int dim = 0; dim < layout->ndim; dim++)
        if (index[dim] < 0 || index[dim] >= layout->shape[dim])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_layout_owner: index %lld of dim %d is out of range: the dim has size %lld",
                                  (long long)index[dim], dim, (long long)layout->shape[dim]);
    return TSR_OK;
}

/* The number of ranks that have what one coordinate has: those along mesh dims that do not cut. */
static int64_t count_holders(const tsr_layout *layout)
{
    int64_t holders = tsr_mesh_count(layout->mesh);
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_layout_kind(layout, i) == TSR_SHARD)
            holders /= tsr_mesh_shape(layout->mesh)[i];
    return holders;
}

tsr_status tsr_layout_owner(const tsr_layout *layout, const int64_t *index, tsr_owner *owner)
{
    if (!layout || !owner || (!index && layout->ndim > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_owner: %s is NULL",
                              !layout  ? "layout"
                              : !owner ? "owner"
                                       : "index");
    TSR_TRY(check_index(layout, index));
    tsr_owner found = {.holders = count_holders(layout)};
    for (int dim = 0; dim < layout->ndim; dim++)
        found.local[dim] = tsr_layout_owner_along(layout, dim, index[dim], found.coordinate).local;
    found.rank = tsr_mesh_rank(layout->mesh, found.coordinate);
    *owner = found;
    return TSR_OK;
}

static tsr_status check_positions(const tsr_layout *layout, int dim, size_t count, const int64_t *positions)
{
    for (size_t i = 0; i < count; i++)
        if (positions[i] < 0 || positions[i] >= layout->shape[dim])
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "tsr_layout_owners: position %zu is %lld, out of range: dim %d has size %lld", i,
                                  (long long)positions[i], dim, (long long)layout->shape[dim]);
    return TSR_OK;
}

/* The row-major number of a coordinate over the mesh dims that cut `dim`, in the order of mesh
 * dims. */
static int64_t number_part(const tsr_layout *layout, int dim, const int64_t *coordinate)
{
    int64_t part = 0;
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (tsr_layout_kind(layout, i) == TSR_SHARD && layout->placements[i].dim == dim)
            part = part * tsr_mesh_shape(layout->mesh)[i] + coordinate[i];
    return part;
}

/* A position in the run of the one before it needs no search. */
static void find_owners(tsr_owner_walk *walk, size_t count, const int64_t *positions, int64_t *parts, int64_t *locals)
{
    tsr_cut_run run = {0};
    int64_t part = 0;
    for (size_t i = 0; i < count; i++) {
        const int64_t at = positions[i];
        if (at < run.begin || at - run.begin >= run.length) {
            int64_t coordinate[TSR_MAX_DIMS] = {0};
            run = tsr_owner_walk_at(walk, at, coordinate);
            part = number_part(walk->layout, walk->dim, coordinate);
        }
        if (parts)
            parts[i] = part;
        if (locals)
            locals[i] = run.local + (at - run.begin);
    }
}

tsr_status tsr_layout_owners(const tsr_layout *layout, int dim, size_t count, const int64_t *positions, int64_t *parts,
                             int64_t *locals)
{
    if (!layout || (!positions && count > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_owners: %s is NULL", !layout ? "layout" : "positions");
    if (dim < 0 || dim >= layout->ndim)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_layout_owners: dim %d, but the tensor has %d dims", dim,
                              layout->ndim);
    TSR_TRY(check_positions(layout, dim, count, positions));
    tsr_owner_walk walk;
    const tsr_status status = tsr_owner_walk_begin(&walk, layout, dim);
    if (status == TSR_OK)
        find_owners(&walk, count, positions, parts, locals);
    tsr_owner_walk_end(&walk);
    return status;
}
