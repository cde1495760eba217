/* Meshes made from a mesh: slice, flatten, unflatten, other orders and communicators. */
#include "mesh/derive.h"

#include "base/memory/memory.h"
#include "base/text/scan.h"
#include "base/text/text.h"
#include "mesh/build.h"

#include <tessera/mesh.h>
#include <tessera/sys/mesh_attachment.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

static size_t token_length(const char *text)
{
    return strcspn(text, ", ");
}

/* The dim whose name or index the token is; -1: there is no such dim. */
static int match_dim(const tsr_mesh *mesh, const char *token, size_t length)
{
    for (int d = 0; d < mesh->grid.ndim; d++) {
        if (mesh->names[d] && strlen(mesh->names[d]) == length && memcmp(mesh->names[d], token, length) == 0)
            return d;
        if (length == 1 && token[0] == '0' + d)
            return d;
    }
    return -1;
}

static tsr_status unknown_dim(const tsr_mesh *mesh, tsr_scan *scan)
{
    char reason[256];
    tsr_text text = {reason, sizeof reason, 0};
    tsr_text_append(&text, "the mesh has no such dim, but has");
    for (int d = 0; d < mesh->grid.ndim; d++) {
        if (mesh->names[d])
            tsr_text_append(&text, " \"%.32s\"", mesh->names[d]);
        else
            tsr_text_append(&text, " \"%d\"", d);
    }
    return tsr_scan_refuse(scan, scan->at, reason);
}

/* Reads a list of dims: at least one, in mesh order. `call` begins errors' sentences. */
static tsr_status choose_dims(const tsr_mesh *mesh, const char *call, const char *dims, tsr_mesh_dims *out)
{
    char what[64];
    snprintf(what, sizeof what, "%s: dims", call);
    tsr_scan scan = {what, dims, 0};
    out->count = 0;
    do {
        const size_t length = token_length(dims + scan.at);
        const int dim = match_dim(mesh, dims + scan.at, length);
        if (dim < 0)
            return unknown_dim(mesh, &scan);
        if (out->count > 0 && dim <= out->dims[out->count - 1])
            return tsr_scan_refuse(&scan, scan.at, "dims go in mesh order, each once");
        out->dims[out->count++] = dim;
        scan.at += length;
    } while (tsr_scan_comma(&scan));
    return dims[scan.at] ? tsr_scan_expected(&scan, scan.at, "\",\" or the end") : TSR_OK;
}

/* Describes a mesh like `mesh`; dims are added by the caller. */
static tsr_mesh_description describe_like(const tsr_mesh *mesh, const char *call)
{
    tsr_mesh_description description = {
        .call = call, .context = mesh->context, .comm = mesh->comm, .named = mesh->names[0] != NULL};
    description.owner = mesh->owns_comm ? (tsr_mesh *)mesh : mesh->owner;
    description.grid.first = mesh->grid.first;
    description.nodes = mesh->nodes;
    return description;
}

static void add_dim(tsr_mesh_description *description, int64_t size, int64_t stride, const char *name)
{
    const int d = description->grid.ndim++;
    description->grid.shape[d] = size;
    description->grid.strides[d] = stride;
    description->names[d] = name;
}

void tsr_mesh_list_slice(const tsr_mesh *mesh, const tsr_mesh_dims *dims, const int64_t *base, int64_t *ranks)
{
    tsr_grid walk = {.ndim = dims->count};
    int64_t at[TSR_MAX_DIMS] = {0}, coordinate[TSR_MAX_DIMS];
    for (int i = 0; i < dims->count; i++)
        walk.shape[i] = mesh->grid.shape[dims->dims[i]];
    memcpy(coordinate, base, (size_t)mesh->grid.ndim * sizeof *base);
    size_t listed = 0;
    do {
        for (int i = 0; i < dims->count; i++)
            coordinate[dims->dims[i]] = at[i];
        ranks[listed++] = tsr_grid_rank(&mesh->grid, coordinate);
    } while (tsr_grid_next(&walk, at));
}

int64_t tsr_mesh_count_slice(const tsr_mesh *mesh, const tsr_mesh_dims *dims)
{
    int64_t count = 1;
    for (int i = 0; i < dims->count; i++)
        count *= mesh->grid.shape[dims->dims[i]];
    return count;
}

/* Builds a mesh from a list of ranks: those of `source` where the dims in `walked` take all their
 * values and the other dims stay as in `base`. */
static tsr_status build_listed(tsr_mesh_description *description, const tsr_mesh *source, const tsr_mesh_dims *walked,
                               const int64_t *base, tsr_mesh **out)
{
    void *memory;
    TSR_TRY(
        tsr_allocate(description->context, (size_t)tsr_mesh_count_slice(source, walked) * sizeof(int64_t), &memory));
    tsr_mesh_list_slice(source, walked, base, memory);
    description->ranks = memory;
    const tsr_status status = tsr_mesh_build(description, out);
    tsr_release(description->context, memory);
    return status;
}

static tsr_mesh_dims all_dims(const tsr_mesh *mesh)
{
    tsr_mesh_dims all = {.count = mesh->grid.ndim};
    for (int d = 0; d < all.count; d++)
        all.dims[d] = d;
    return all;
}

/* Builds a mesh with the ranks of `mesh`, in their order. If the grid of the description is not
 * `complete` (has no strides), the ranks are listed. */
static tsr_status build_reshaped(tsr_mesh_description *description, const tsr_mesh *mesh, bool complete, tsr_mesh **out)
{
    const tsr_mesh_dims all = all_dims(mesh);
    const int64_t base[TSR_MAX_DIMS] = {0};
    return complete ? tsr_mesh_build(description, out) : build_listed(description, mesh, &all, base, out);
}

tsr_status tsr_mesh_choose_dims(const tsr_mesh *mesh, const char *call, const char *dims, tsr_mesh_dims *out)
{
    if (dims && *dims)
        return choose_dims(mesh, call, dims, out);
    *out = all_dims(mesh);
    return TSR_OK;
}

tsr_status tsr_mesh_slice(const tsr_mesh *mesh, const char *dims, tsr_mesh **out)
{
    if (!mesh || !dims || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_slice: mesh, dims and out must not be NULL");
    tsr_mesh_dims kept;
    TSR_TRY(choose_dims(mesh, "tsr_mesh_slice", dims, &kept));
    int64_t base[TSR_MAX_DIMS] = {0};
    int inside;
    TSR_TRY(tsr_mesh_coordinate(mesh, base, &inside));
    tsr_mesh_description description = describe_like(mesh, "tsr_mesh_slice");
    for (int i = 0; i < kept.count; i++) {
        const int d = kept.dims[i];
        base[d] = 0;
        add_dim(&description, mesh->grid.shape[d], mesh->grid.strides[d], mesh->names[d]);
    }
    if (mesh->grid.list)
        return build_listed(&description, mesh, &kept, base, out);
    description.grid.first = tsr_grid_rank(&mesh->grid, base);
    return tsr_mesh_build(&description, out);
}

/* The stride of dims [begin, end) merged into one dim. False if no single stride reaches all their
 * ranks. */
static bool merge_strides(const tsr_grid *grid, int begin, int end, int64_t *merged)
{
    int64_t stride = 0, size = 1;
    for (int d = end - 1; d >= begin; d--) {
        if (grid->shape[d] == 1)
            continue;
        if (size > 1 && grid->strides[d] != stride * size)
            return false;
        stride = size > 1 ? stride : grid->strides[d];
        size *= grid->shape[d];
    }
    *merged = stride;
    return true;
}

static int64_t merge_sizes(const tsr_grid *grid, int begin, int end)
{
    int64_t size = 1;
    for (int d = begin; d < end; d++)
        size *= grid->shape[d];
    return size;
}

/* The names of dims [begin, end), joined by "_"; the caller releases `*out`, which is NULL for an
 * unnamed mesh. */
static tsr_status join_names(const tsr_mesh *mesh, int begin, int end, void **out)
{
    *out = NULL;
    if (!mesh->names[0])
        return TSR_OK;
    size_t bytes = 0;
    for (int d = begin; d < end; d++)
        bytes += strlen(mesh->names[d]) + 1;
    TSR_TRY(tsr_allocate(mesh->context, bytes, out));
    tsr_text text = {*out, bytes, 0};
    for (int d = begin; d < end; d++)
        tsr_text_append(&text, "%s%s", d > begin ? "_" : "", mesh->names[d]);
    return TSR_OK;
}

static tsr_status flatten_range(const tsr_mesh *mesh, int begin, int end, const char *name, tsr_mesh **out)
{
    const tsr_grid *grid = &mesh->grid;
    tsr_mesh_description description = describe_like(mesh, "tsr_mesh_flatten");
    int64_t stride = 0;
    const bool regular = !grid->list && merge_strides(grid, begin, end, &stride);
    for (int d = 0; d < grid->ndim; d++) {
        if (d < begin || d >= end)
            add_dim(&description, grid->shape[d], grid->strides[d], mesh->names[d]);
        else if (d == begin)
            add_dim(&description, merge_sizes(grid, begin, end), stride, name);
    }
    return build_reshaped(&description, mesh, regular, out);
}

tsr_status tsr_mesh_flatten(const tsr_mesh *mesh, const char *dims, tsr_mesh **out)
{
    if (!mesh || !dims || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_flatten: mesh, dims and out must not be NULL");
    tsr_mesh_dims merged;
    TSR_TRY(tsr_mesh_choose_dims(mesh, "tsr_mesh_flatten", dims, &merged));
    const int begin = merged.dims[0], end = begin + merged.count;
    if (merged.dims[merged.count - 1] != end - 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_mesh_flatten: dims \"%.200s\" are not adjacent; slice them out first", dims);
    void *name;
    TSR_TRY(join_names(mesh, begin, end, &name));
    const tsr_status status = flatten_range(mesh, begin, end, name, out);
    tsr_release(mesh->context, name);
    return status;
}

static tsr_status check_unflatten(const tsr_mesh *mesh, int dim, int ndim, const int64_t *shape,
                                  const char *const *names)
{
    if (ndim < 1 || ndim > TSR_MAX_DIMS + 1 - mesh->grid.ndim)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_mesh_unflatten: ndim is %d; the mesh has %d dims already and can have %d", ndim,
                              mesh->grid.ndim, TSR_MAX_DIMS);
    if (mesh->names[0] && !names)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_unflatten: names is NULL, but the mesh has named dims");
    if (!mesh->names[0] && names && mesh->grid.ndim > 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_mesh_unflatten: names must be NULL, because the other dims have none");
    int64_t product = 1;
    for (int i = 0; i < ndim; i++) {
        const int64_t rest = mesh->grid.shape[dim] / product;
        if (shape[i] < 1 || rest % shape[i] != 0)
            return tsr_status_set(
                TSR_ERROR_ARGUMENT,
                "tsr_mesh_unflatten: shape[%d] is %lld, which does not divide the %lld ranks left of dim %d", i,
                (long long)shape[i], (long long)rest, dim);
        product *= shape[i];
    }
    if (product != mesh->grid.shape[dim])
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "tsr_mesh_unflatten: shape has %lld ranks in all, but dim %d has %lld",
                              (long long)product, dim, (long long)mesh->grid.shape[dim]);
    return TSR_OK;
}

static void split_dim(const tsr_grid *grid, int dim, int ndim, const int64_t *shape, const char *const *names,
                      tsr_mesh_description *description)
{
    int64_t stride = grid->strides[dim] * grid->shape[dim];
    for (int i = 0; i < ndim; i++) {
        stride /= shape[i];
        add_dim(description, shape[i], stride, names ? names[i] : NULL);
    }
}

tsr_status tsr_mesh_unflatten(const tsr_mesh *mesh, const char *dim, int ndim, const int64_t *shape,
                              const char *const *names, tsr_mesh **out)
{
    if (!mesh || !dim || !shape || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_unflatten: mesh, dim, shape and out must not be NULL");
    tsr_mesh_dims one;
    TSR_TRY(choose_dims(mesh, "tsr_mesh_unflatten", dim, &one));
    if (one.count != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_unflatten: dim is \"%.200s\", not one dim", dim);
    TSR_TRY(check_unflatten(mesh, one.dims[0], ndim, shape, names));
    tsr_mesh_description description = describe_like(mesh, "tsr_mesh_unflatten");
    description.named = names != NULL;
    for (int d = 0; d < mesh->grid.ndim; d++) {
        if (d == one.dims[0])
            split_dim(&mesh->grid, d, ndim, shape, names, &description);
        else
            add_dim(&description, mesh->grid.shape[d], mesh->grid.strides[d], mesh->names[d]);
    }
    return build_reshaped(&description, mesh, !mesh->grid.list, out);
}

/* Builds a mesh with all dims and ranks of `mesh`; communicator and nodes are those of the
 * description. */
static tsr_status build_copy(tsr_mesh_description *description, const tsr_mesh *mesh, tsr_mesh **out)
{
    for (int d = 0; d < mesh->grid.ndim; d++)
        add_dim(description, mesh->grid.shape[d], mesh->grid.strides[d], mesh->names[d]);
    return build_reshaped(description, mesh, !mesh->grid.list, out);
}

tsr_status tsr_mesh_copy(const tsr_mesh *mesh, tsr_mesh **out)
{
    tsr_mesh_description description = describe_like(mesh, "tsr_mesh_copy");
    description.comm = NULL;
    description.owner = NULL;
    return build_copy(&description, mesh, out);
}

tsr_status tsr_mesh_reorder(const tsr_mesh *mesh, const int64_t *ranks, tsr_mesh **out)
{
    tsr_mesh_description description = describe_like(mesh, "tsr_mesh_reorder");
    for (int d = 0; d < mesh->grid.ndim; d++)
        add_dim(&description, mesh->grid.shape[d], 0, mesh->names[d]);
    description.ranks = ranks;
    return tsr_mesh_build(&description, out);
}

/* The nodes of these ranks of `mesh`, for a mesh in which they are 0, 1, .. `*out` is a new
 * reference, or NULL. */
static tsr_status number_nodes(const tsr_mesh *mesh, const int64_t *ranks, int64_t count, tsr_node_map **out)
{
    *out = NULL;
    if (!mesh->nodes)
        return TSR_OK;
    void *memory;
    TSR_TRY(tsr_allocate(mesh->context, (size_t)count * sizeof(int64_t), &memory));
    int64_t *node = memory;
    for (int64_t i = 0; i < count; i++)
        node[i] = tsr_node_map_find(mesh->nodes, ranks[i]);
    const tsr_nodes nodes = {.count = count, .node = node};
    const tsr_status status = tsr_node_map_create("tsr_mesh_split: nodes", mesh->context, &nodes, out);
    tsr_release(mesh->context, memory);
    return status;
}

tsr_status tsr_mesh_build_split(const tsr_mesh *mesh, const tsr_mesh_dims *dims, const int64_t *ranks, tsr_comm *comm,
                                tsr_mesh **out)
{
    tsr_mesh_description description = describe_like(mesh, "tsr_mesh_split");
    for (int i = 0; i < dims->count; i++) {
        const int d = dims->dims[i];
        add_dim(&description, mesh->grid.shape[d], 0, mesh->names[d]);
    }
    TSR_TRY(number_nodes(mesh, ranks, tsr_mesh_count_slice(mesh, dims), &description.nodes));
    description.comm = comm;
    description.owner = NULL;
    description.owns_comm = true;
    description.numbered = true;
    description.grid.first = 0;
    const tsr_status status = tsr_mesh_build(&description, out);
    tsr_node_map_destroy(description.nodes);
    return status;
}

tsr_status tsr_mesh_with_nodes(const tsr_mesh *mesh, const tsr_nodes *nodes, tsr_mesh **out)
{
    if (!mesh || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_mesh_with_nodes: %s is NULL", mesh ? "out" : "mesh");
    tsr_node_map *map;
    int64_t lowest, highest;
    tsr_grid_ends(&mesh->grid, &lowest, &highest);
    TSR_TRY(tsr_node_map_create("tsr_mesh_with_nodes: nodes", mesh->context, nodes, &map));
    tsr_status status = nodes ? tsr_nodes_check_ranks("tsr_mesh_with_nodes: nodes", nodes, highest) : TSR_OK;
    if (status == TSR_OK) {
        tsr_mesh_description description = describe_like(mesh, "tsr_mesh_with_nodes");
        description.nodes = map;
        status = build_copy(&description, mesh, out);
    }
    tsr_node_map_destroy(map);
    return status;
}
