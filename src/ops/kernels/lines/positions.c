#include "ops/kernels/lines/positions.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>

int64_t tsr_positions_count(const tsr_layout *layout, const int64_t *coordinate, int dim)
{
    size_t count = 0;
    return tsr_layout_intervals(layout, coordinate, dim, NULL, 0, &count) == TSR_OK ? (int64_t)count : 0;
}

tsr_status tsr_positions_read(const tsr_layout *layout, const int64_t *coordinate, int dim, tsr_interval *buffer,
                              tsr_positions *out)
{
    const int64_t room = tsr_positions_count(layout, coordinate, dim);
    size_t count;
    TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, buffer, (size_t)room, &count));
    *out = (tsr_positions){buffer, (int64_t)count, 0};
    for (size_t i = 0; i < count; i++) {
        out->length += buffer[i].end - buffer[i].begin;
        buffer[i].end = out->length;
    }
    return TSR_OK;
}

int64_t tsr_positions_global(const tsr_positions *positions, int64_t local)
{
    int64_t low = 0, high = positions->count - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (positions->list[middle].end > local)
            high = middle;
        else
            low = middle + 1;
    }
    return positions->list[low].begin + local - (low ? positions->list[low - 1].end : 0);
}

int64_t tsr_positions_local(const tsr_positions *positions, int64_t global)
{
    int64_t low = 0, high = positions->count;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (positions->list[middle].begin > global)
            high = middle;
        else
            low = middle + 1;
    }
    if (low == 0)
        return -1;
    const int64_t first = low > 1 ? positions->list[low - 2].end : 0;
    const int64_t local = first + global - positions->list[low - 1].begin;
    return local < positions->list[low - 1].end ? local : -1;
}

static bool cuts(const tsr_layout *layout, int mesh_dim, int dim)
{
    const tsr_placement *const p = &tsr_layout_placements(layout)[mesh_dim];
    return p->kind == TSR_SHARD && p->dim == dim;
}

void tsr_positions_most(const tsr_layout *layout, const int64_t *coordinate, int dim, int64_t *elements,
                        int64_t *intervals)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layout);
    int64_t at[TSR_MAX_DIMS], shape[TSR_MAX_DIMS];
    int k = 0;
    *elements = *intervals = 0;
    for (int i = 0; i < tsr_mesh_ndim(mesh); i++)
        at[i] = cuts(layout, i, dim) ? 0 : coordinate[i];
    while (k >= 0) {
        const int64_t count = tsr_positions_count(layout, at, dim);
        if (tsr_layout_local(layout, at, shape, NULL) == TSR_OK && shape[dim] > *elements)
            *elements = shape[dim];
        *intervals = count > *intervals ? count : *intervals;
        for (k = tsr_mesh_ndim(mesh) - 1; k >= 0; k--) {
            if (cuts(layout, k, dim) && ++at[k] < tsr_mesh_size(mesh, k))
                break;
            at[k] = cuts(layout, k, dim) ? 0 : at[k];
        }
    }
}
