/* Ownership of indices, by cuts applied to explicit lists. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

int64_t oracle_mesh_count(const oracle_mesh *mesh)
{
    int64_t count = 1;
    for (int d = 0; d < mesh->ndim; d++)
        count *= mesh->shape[d];
    return count;
}

void oracle_mesh_coordinate(const oracle_mesh *mesh, int64_t position, int64_t *coordinate)
{
    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coordinate[d] = position % mesh->shape[d];
        position /= mesh->shape[d];
    }
}

int64_t oracle_mesh_position(const oracle_mesh *mesh, int64_t rank)
{
    const int64_t count = oracle_mesh_count(mesh);
    for (int64_t p = 0; p < count; p++)
        if (mesh->ranks[p] == rank)
            return p;
    return -1;
}

oracle_mesh oracle_mesh_make(int ndim, const int64_t *shape, int64_t first)
{
    oracle_mesh mesh = {.ndim = ndim};
    memcpy(mesh.shape, shape, (size_t)ndim * sizeof *shape);
    const int64_t count = oracle_mesh_count(&mesh);
    for (int64_t p = 0; p < count; p++)
        mesh.ranks[p] = first + p;
    return mesh;
}

/* The range [begin, end) of part `part` of `parts` of `length` items. */
static void deal(bool balanced, int64_t length, int64_t parts, int64_t part, int64_t *begin, int64_t *end)
{
    int64_t at = 0;
    const int64_t chunk = length / parts + (length % parts > 0 ? 1 : 0);
    for (int64_t p = 0;; p++) {
        int64_t take = balanced ? length / parts + (p < length % parts ? 1 : 0) : chunk;
        if (take > length - at)
            take = length - at;
        if (p == part) {
            *begin = at;
            *end = at + take;
            return;
        }
        at += take;
    }
}

/* Cuts one block: divides it into units, deals the units out, and writes the indices of a part one
 * by one. */
static int64_t cut_block(const tsr_placement *placement, int64_t parts, int64_t part, const int64_t *block,
                         int64_t count, int64_t *out)
{
    const int64_t unit = placement->unit > 0 ? placement->unit : 1;
    int64_t units = 0;
    while (units * unit < count)
        units++;
    int64_t begin, end, kept = 0;
    deal(placement->balanced, units, parts, part, &begin, &end);
    for (int64_t i = 0; i < count; i++)
        if (i / unit >= begin && i / unit < end)
            out[kept++] = block[i];
    return kept;
}

static int64_t cut_by_sizes(const tsr_placement *placement, int64_t part, const int64_t *piece, int64_t *out)
{
    int64_t begin = 0;
    for (int64_t p = 0; p < part; p++)
        begin += placement->sizes[p];
    for (int64_t i = 0; i < placement->sizes[part]; i++)
        out[i] = piece[begin + i];
    return placement->sizes[part];
}

int64_t oracle_cut(const tsr_placement *placement, int64_t parts, int64_t part, const int64_t *piece, int64_t count,
                   int64_t *out)
{
    if (placement->sizes)
        return cut_by_sizes(placement, part, piece, out);
    const int64_t blocks = placement->blocks != NULL   ? (int64_t)placement->block_count
                           : placement->interleave > 0 ? placement->interleave
                                                       : 1;
    int64_t begin = 0, kept = 0;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t end = begin + (placement->blocks ? placement->blocks[b] : 0);
        if (!placement->blocks)
            deal(false, count, blocks, b, &begin, &end);
        kept += cut_block(placement, parts, part, piece + begin, end - begin, out + kept);
        begin = end;
    }
    return kept;
}

static int order_of(const oracle_layout *layout, int mesh_dim)
{
    const int order = layout->placements[mesh_dim].order;
    return order == TSR_ORDER_DEFAULT ? mesh_dim : order;
}

int oracle_cuts_of(const oracle_layout *layout, int dim, int *mesh_dims)
{
    int count = 0;
    for (int m = 0; m < layout->mesh.ndim; m++) {
        if (layout->placements[m].kind != TSR_SHARD || layout->placements[m].dim != dim)
            continue;
        int at = count++;
        for (; at > 0 && order_of(layout, mesh_dims[at - 1]) > order_of(layout, m); at--)
            mesh_dims[at] = mesh_dims[at - 1];
        mesh_dims[at] = m;
    }
    return count;
}

int64_t oracle_owned(const oracle_layout *layout, const int64_t *coordinate, int dim, int64_t *out)
{
    int64_t count = layout->shape[dim];
    int64_t *piece = calloc((size_t)count + 1, sizeof *piece);
    for (int64_t i = 0; i < count; i++)
        out[i] = i;
    int cuts[TSR_MAX_DIMS];
    const int cut_count = oracle_cuts_of(layout, dim, cuts);
    for (int c = 0; c < cut_count; c++) {
        memcpy(piece, out, (size_t)count * sizeof *piece);
        count = oracle_cut(&layout->placements[cuts[c]], layout->mesh.shape[cuts[c]], coordinate[cuts[c]], piece, count,
                           out);
    }
    free(piece);
    return count;
}

void oracle_shard_create(const oracle_layout *layout, int64_t rank, oracle_shard *out)
{
    const int64_t position = oracle_mesh_position(&layout->mesh, rank);
    int64_t coordinate[TSR_MAX_DIMS];
    if (position >= 0)
        oracle_mesh_coordinate(&layout->mesh, position, coordinate);
    *out = (oracle_shard){.ndim = layout->ndim, .count = position >= 0 ? 1 : 0};
    for (int d = 0; d < layout->ndim; d++) {
        out->global_shape[d] = layout->shape[d];
        out->index[d] = calloc((size_t)layout->shape[d] + 1, sizeof(int64_t));
        out->shape[d] = position >= 0 ? oracle_owned(layout, coordinate, d, out->index[d]) : 0;
        out->count *= out->shape[d];
    }
}

void oracle_shard_destroy(oracle_shard *shard)
{
    for (int d = 0; d < shard->ndim; d++)
        free(shard->index[d]);
}

int64_t oracle_shard_global(const oracle_shard *shard, int64_t local)
{
    int64_t global = 0, weight = 1;
    for (int d = shard->ndim - 1; d >= 0; d--) {
        global += shard->index[d][local % shard->shape[d]] * weight;
        local /= shard->shape[d];
        weight *= shard->global_shape[d];
    }
    return global;
}

int64_t oracle_count(const oracle_layout *layout)
{
    int64_t count = 1;
    for (int d = 0; d < layout->ndim; d++)
        count *= layout->shape[d];
    return count;
}

void oracle_mark(const oracle_layout *layout, int64_t rank, bool *held)
{
    oracle_shard shard;
    oracle_shard_create(layout, rank, &shard);
    for (int64_t i = 0; i < shard.count; i++)
        held[oracle_shard_global(&shard, i)] = true;
    oracle_shard_destroy(&shard);
}

bool oracle_are_replicas(const oracle_layout *layout, int64_t p, int64_t q)
{
    int64_t a[TSR_MAX_DIMS], b[TSR_MAX_DIMS];
    oracle_mesh_coordinate(&layout->mesh, p, a);
    oracle_mesh_coordinate(&layout->mesh, q, b);
    for (int m = 0; m < layout->mesh.ndim; m++)
        if (layout->placements[m].kind != TSR_REPLICATE && a[m] != b[m])
            return false;
    return true;
}
