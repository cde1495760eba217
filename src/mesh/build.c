#include "mesh/build.h"

#include "base/checked.h"
#include "base/memory/memory.h"

#include <tessera/sys/comm.h>

#include <string.h>

int64_t tsr_mesh_limit(const tsr_comm *comm)
{
    return comm ? tsr_comm_size(comm) : TSR_GRID_RANKS;
}

size_t tsr_mesh_name_length(const char *text)
{
    static const char characters[] = "0123456789_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return *text >= '0' && *text <= '9' ? 0 : strspn(text, characters);
}

tsr_status tsr_mesh_describe(const char *call, tsr_context *context, tsr_comm *comm, int ndim, const int64_t *shape,
                             const char *const *names, const int64_t *ranks, tsr_mesh_description *out)
{
    if (ndim < 1 || ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: ndim is %d; a mesh has 1 to %d dims", call, ndim, TSR_MAX_DIMS);
    if (!shape)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: shape is NULL, but ndim is %d", call, ndim);
    *out = (tsr_mesh_description){
        .call = call, .context = context, .comm = comm, .numbered = true, .ranks = ranks, .named = names};
    out->asks_comm = comm != NULL;
    out->grid.ndim = ndim;
    memcpy(out->grid.shape, shape, (size_t)ndim * sizeof *shape);
    for (int d = 0; names && d < ndim; d++)
        out->names[d] = names[d];
    return TSR_OK;
}

static tsr_status check_shape(tsr_mesh_description *description)
{
    tsr_grid *grid = &description->grid;
    const int64_t limit = tsr_mesh_limit(description->comm);
    grid->count = 1;
    for (int d = 0; d < grid->ndim; d++) {
        if (grid->shape[d] < 1)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: shape[%d] is %lld; a mesh dim has at least 1 rank",
                                  description->call, d, (long long)grid->shape[d]);
        if (!tsr_multiply(grid->count, grid->shape[d], &grid->count) || grid->count > limit)
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "%s: up to shape[%d] = %lld there are more ranks than the %lld that %s",
                                  description->call, d, (long long)grid->shape[d], (long long)limit,
                                  description->comm ? "the communicator has" : "an abstract mesh can have");
    }
    return TSR_OK;
}

static tsr_status check_name(const tsr_mesh_description *description, int dim)
{
    const char *name = description->names[dim];
    if (!name)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: names[%d] is NULL; name all dims or none", description->call,
                              dim);
    if (!*name || name[tsr_mesh_name_length(name)])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: names[%d] is \"%.64s\"; a name has letters, digits and _, and no digit first",
                              description->call, dim, name);
    for (int d = 0; d < dim; d++)
        if (strcmp(description->names[d], name) == 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dims %d and %d would both be called \"%.64s\"",
                                  description->call, d, dim, name);
    return TSR_OK;
}

static tsr_status check_ranks(const tsr_mesh_description *description)
{
    const int64_t limit = tsr_mesh_limit(description->comm);
    for (int64_t i = 0; i < description->grid.count; i++)
        if (description->ranks[i] < 0 || description->ranks[i] >= limit)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: ranks[%lld] is %lld, not 0 to %lld", description->call,
                                  (long long)i, (long long)description->ranks[i], (long long)limit - 1);
    return TSR_OK;
}

/* Checks that the ranks first + the sum of coordinate * stride are in range and all different.
 * Nothing overflows: sizes multiply to less than 2^31, so coordinates add up to less than 2^31, and
 * strides are checked to be below 2^31. */
static tsr_status check_strides(const tsr_mesh_description *description)
{
    tsr_grid grid = description->grid;
    const int64_t limit = tsr_mesh_limit(description->comm);
    int64_t lowest = grid.first, highest = grid.first;
    bool inside = lowest >= 0 && highest < limit;
    for (int d = 0; d < grid.ndim && inside; d++) {
        const int64_t stride = grid.shape[d] > 1 ? grid.strides[d] : 0;
        inside = stride > -limit && stride < limit;
        if (inside)
            *(stride < 0 ? &lowest : &highest) += stride * (grid.shape[d] - 1);
    }
    if (!inside || lowest < 0 || highest >= limit)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: from rank %lld on, the strides leave the ranks 0 to %lld",
                              description->call, (long long)grid.first, (long long)limit - 1);
    if (!tsr_grid_nest(&grid))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: a stride is not larger than the sum that smaller strides reach: list the ranks",
                              description->call);
    return TSR_OK;
}

/* True, with the grid completed, if it is regular; false: its ranks need a list. */
static bool make_regular(const tsr_mesh_description *description, tsr_grid *grid)
{
    if (description->ranks)
        return tsr_grid_fit(grid, description->ranks);
    if (description->numbered)
        tsr_grid_number(grid, grid->first);
    else
        tsr_grid_nest(grid);
    return true;
}

static size_t names_bytes(const tsr_mesh_description *description)
{
    size_t bytes = 0;
    for (int d = 0; description->named && d < description->grid.ndim; d++)
        bytes += strlen(description->names[d]) + 1;
    return bytes;
}

static void copy_names(const tsr_mesh_description *description, tsr_mesh *mesh, char *into)
{
    for (int d = 0; description->named && d < description->grid.ndim; d++) {
        const size_t bytes = strlen(description->names[d]) + 1;
        mesh->names[d] = memcpy(into, description->names[d], bytes);
        into += bytes;
    }
}

/* The node map of the mesh to be made, as a new reference. */
static tsr_status take_nodes(const tsr_mesh_description *description, tsr_node_map **out)
{
    if (description->asks_comm)
        return tsr_node_map_of_comm(description->context, description->comm, out);
    *out = tsr_node_map_retain(description->nodes);
    return TSR_OK;
}

/* Makes one block: the mesh, then, for an irregular grid, the list and its sorted positions, then
 * the names. On success the mesh owns `nodes`. */
static tsr_status make_mesh(const tsr_mesh_description *description, tsr_grid *grid, tsr_node_map *nodes,
                            tsr_mesh **out)
{
    const size_t listed = make_regular(description, grid) ? 0 : (size_t)grid->count;
    void *block;
    TSR_TRY(tsr_allocate(description->context,
                         sizeof(tsr_mesh) + 2 * listed * sizeof(int32_t) + names_bytes(description), &block));
    tsr_mesh *mesh = block;
    int32_t *list = (int32_t *)(mesh + 1);
    int64_t twice[2];
    if (listed && !tsr_grid_list(grid, description->ranks, list, list + listed, twice)) {
        tsr_release(description->context, block);
        if (description->repeated)
            *description->repeated = twice[1];
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: ranks[%lld] and ranks[%lld] are both %lld", description->call,
                              (long long)twice[0], (long long)twice[1], (long long)description->ranks[twice[0]]);
    }
    *mesh = (tsr_mesh){.context = tsr_context_retain(description->context),
                       .comm = tsr_comm_retain(description->comm),
                       .owns_comm = description->owns_comm,
                       .owner = description->owner,
                       .grid = *grid,
                       .nodes = nodes};
    mesh->references = 1;
    if (mesh->owner)
        tsr_references_add(&mesh->owner->references);
    mesh->hash = tsr_grid_hash(grid);
    copy_names(description, mesh, (char *)(list + 2 * listed));
    *out = mesh;
    return TSR_OK;
}

tsr_status tsr_mesh_build(tsr_mesh_description *description, tsr_mesh **out)
{
    TSR_TRY(check_shape(description));
    for (int d = 0; description->named && d < description->grid.ndim; d++)
        TSR_TRY(check_name(description, d));
    if (description->ranks)
        TSR_TRY(check_ranks(description));
    else if (!description->numbered)
        TSR_TRY(check_strides(description));
    tsr_node_map *nodes;
    TSR_TRY(take_nodes(description, &nodes));
    const tsr_status status = make_mesh(description, &description->grid, nodes, out);
    if (status != TSR_OK)
        tsr_node_map_destroy(nodes);
    return status;
}
