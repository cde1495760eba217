#include "mesh/mesh.h"

#include "base/context.h"
#include "base/memory/memory.h"
#include "base/text/text.h"
#include "mesh/build.h"

#include <tessera/mesh.h>
#include <tessera/sys/comm.h>

#include <string.h>

tsr_status tsr_mesh_create(tsr_comm *comm, int ndim, const int64_t *shape, const char *const *names,
                           const int64_t *ranks, tsr_mesh **out)
{
    if (!comm || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_create: %s",
                              comm ? "out is NULL" : "comm is NULL; tsr_mesh_create_abstract() needs none");
    tsr_mesh_description description;
    TSR_TRY(
        tsr_mesh_describe("tsr_mesh_create", tsr_comm_context(comm), comm, ndim, shape, names, ranks, &description));
    return tsr_mesh_build(&description, out);
}

tsr_status tsr_mesh_create_abstract(tsr_context *context, int ndim, const int64_t *shape, const char *const *names,
                                    const int64_t *ranks, tsr_mesh **out)
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_create_abstract: out is NULL");
    tsr_mesh_description description;
    TSR_TRY(tsr_mesh_describe("tsr_mesh_create_abstract", NULL, NULL, ndim, shape, names, ranks, &description));
    TSR_TRY(tsr_context_resolve(context, &description.context));
    const tsr_status status = tsr_mesh_build(&description, out);
    tsr_context_destroy(description.context);
    return status;
}

tsr_status tsr_mesh_create_strided(const char *call, tsr_context *context, int ndim, const int64_t *shape,
                                   const char *const *names, int64_t first, const int64_t *strides, tsr_mesh **out)
{
    tsr_mesh_description description;
    TSR_TRY(tsr_mesh_describe(call, NULL, NULL, ndim, shape, names, NULL, &description));
    description.numbered = false;
    description.grid.first = first;
    memcpy(description.grid.strides, strides, (size_t)ndim * sizeof *strides);
    TSR_TRY(tsr_context_resolve(context, &description.context));
    const tsr_status status = tsr_mesh_build(&description, out);
    tsr_context_destroy(description.context);
    return status;
}

tsr_mesh *tsr_mesh_retain(tsr_mesh *mesh)
{
    if (mesh)
        tsr_references_add(&mesh->references);
    return mesh;
}

void tsr_mesh_destroy(tsr_mesh *mesh)
{
    if (!mesh || !tsr_references_drop(&mesh->references))
        return;
    for (int i = 0; i < TSR_MESH_SLOTS; i++)
        if (mesh->slots[i].destroy)
            mesh->slots[i].destroy(mesh->slots[i].data);
    tsr_context *context = mesh->context;
    tsr_mesh *owner = mesh->owner;
    tsr_node_map_destroy(mesh->nodes);
    if (mesh->owns_comm)
        tsr_comm_destroy(mesh->comm);
    tsr_comm_release(mesh->comm);
    tsr_release(context, mesh);
    tsr_context_destroy(context);
    tsr_mesh_destroy(owner);
}

int tsr_mesh_ndim(const tsr_mesh *mesh)
{
    return mesh->grid.ndim;
}

static bool has_dim(const tsr_mesh *mesh, int dim)
{
    return dim >= 0 && dim < mesh->grid.ndim;
}

int64_t tsr_mesh_size(const tsr_mesh *mesh, int dim)
{
    return has_dim(mesh, dim) ? mesh->grid.shape[dim] : 0;
}

int64_t tsr_mesh_count(const tsr_mesh *mesh)
{
    return mesh->grid.count;
}

const char *tsr_mesh_name(const tsr_mesh *mesh, int dim)
{
    return has_dim(mesh, dim) ? mesh->names[dim] : NULL;
}

tsr_nodes tsr_mesh_nodes(const tsr_mesh *mesh)
{
    return tsr_node_map_value(mesh->nodes);
}

tsr_comm *tsr_mesh_comm(const tsr_mesh *mesh)
{
    return mesh->comm;
}

tsr_context *tsr_mesh_context(const tsr_mesh *mesh)
{
    return mesh->context;
}

tsr_status tsr_mesh_find(const tsr_mesh *mesh, const char *name, int *dim)
{
    if (!mesh || !name || !dim)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_find: mesh, name and dim must not be NULL");
    char known[256];
    tsr_text list = {known, sizeof known, 0};
    for (int d = 0; d < mesh->grid.ndim; d++) {
        if (mesh->names[d] && strcmp(mesh->names[d], name) == 0) {
            *dim = d;
            return TSR_OK;
        }
        tsr_text_append(&list, "%s%s", d ? ", " : "", mesh->names[d] ? mesh->names[d] : "(unnamed)");
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_find: the mesh has no dim \"%.64s\"; its dims are %s", name,
                          known);
}

tsr_status tsr_mesh_rank_at(const tsr_mesh *mesh, const int64_t *coordinate, int64_t *rank)
{
    if (!mesh || !coordinate || !rank)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_rank_at: mesh, coordinate and rank must not be NULL");
    for (int d = 0; d < mesh->grid.ndim; d++)
        if (coordinate[d] < 0 || coordinate[d] >= mesh->grid.shape[d])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_rank_at: coordinate[%d] is %lld, not 0 to %lld", d,
                                  (long long)coordinate[d], (long long)mesh->grid.shape[d] - 1);
    *rank = tsr_mesh_rank(mesh, coordinate);
    return TSR_OK;
}

tsr_status tsr_mesh_coordinate_of(const tsr_mesh *mesh, int64_t rank, int64_t *coordinate, int *inside)
{
    if (!mesh || !coordinate || !inside)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_mesh_coordinate_of: mesh, coordinate and inside must not be NULL");
    *inside = tsr_mesh_locate(mesh, rank, coordinate);
    return TSR_OK;
}

tsr_status tsr_mesh_coordinate(const tsr_mesh *mesh, int64_t *coordinate, int *inside)
{
    if (!mesh || !coordinate || !inside)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_coordinate: mesh, coordinate and inside must not be NULL");
    *inside = mesh->comm && tsr_mesh_locate(mesh, tsr_comm_rank(mesh->comm), coordinate);
    return TSR_OK;
}

int tsr_mesh_equal(const tsr_mesh *a, const tsr_mesh *b)
{
    return a == b || (a->hash == b->hash && tsr_grid_equal(&a->grid, &b->grid));
}

int tsr_mesh_congruent(const tsr_mesh *a, const tsr_mesh *b)
{
    if (!tsr_mesh_equal(a, b))
        return 0;
    return a->comm == b->comm || !a->comm || !b->comm || tsr_comm_congruent(a->comm, b->comm);
}

int64_t tsr_mesh_rank(const tsr_mesh *mesh, const int64_t *coordinate)
{
    return tsr_grid_rank(&mesh->grid, coordinate);
}

bool tsr_mesh_locate(const tsr_mesh *mesh, int64_t rank, int64_t *coordinate)
{
    return tsr_grid_locate(&mesh->grid, rank, coordinate);
}

const int64_t *tsr_mesh_shape(const tsr_mesh *mesh)
{
    return mesh->grid.shape;
}

const tsr_grid *tsr_mesh_grid(const tsr_mesh *mesh)
{
    return &mesh->grid;
}

tsr_node_map *tsr_mesh_node_map(const tsr_mesh *mesh)
{
    return mesh->nodes;
}

uint64_t tsr_mesh_hash(const tsr_mesh *mesh)
{
    return mesh->hash;
}

void *tsr_mesh_slot_get(const tsr_mesh *mesh, tsr_mesh_slot slot)
{
    return mesh->slots[slot].data;
}

void tsr_mesh_slot_set(const tsr_mesh *mesh, tsr_mesh_slot slot, void *data, void (*destroy)(void *data))
{
    /* const protects the value of a mesh, and slots are not part of it; every mesh lies in
     * allocated, writable memory. */
    tsr_mesh *writable = (tsr_mesh *)mesh;
    writable->slots[slot] = (tsr_mesh_content){data, destroy};
}
