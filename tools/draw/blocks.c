#include "draw/blocks.h"

#include "cli/parse.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static tsr_status add_cut(block_cuts *cuts, int64_t cut)
{
    if (cuts->count == cuts->capacity) {
        const size_t capacity = 2 * cuts->capacity + 16;
        int64_t *const more = realloc(cuts->at, capacity * sizeof *more);
        if (!more)
            return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %zu cuts", capacity);
        cuts->at = more;
        cuts->capacity = capacity;
    }
    cuts->at[cuts->count++] = cut;
    return TSR_OK;
}

static int compare_cuts(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorts the cuts and removes repeats. */
static void order_cuts(block_cuts *cuts)
{
    if (cuts->count == 0)
        return;
    qsort(cuts->at, cuts->count, sizeof *cuts->at, compare_cuts);
    size_t kept = 0;
    for (size_t i = 0; i < cuts->count; i++)
        if (kept == 0 || cuts->at[kept - 1] != cuts->at[i])
            cuts->at[kept++] = cuts->at[i];
    cuts->count = kept - 1;
}

static bool has_few_intervals(const tsr_layout *layout)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    size_t count;
    do {
        for (int d = 0; d < tsr_layout_ndim(layout); d++)
            if (tsr_layout_intervals(layout, coordinate, d, NULL, 0, &count) != TSR_OK || count > BLOCKS_INTERVALS)
                return false;
    } while (next_coordinate(tsr_layout_mesh(layout), coordinate));
    return true;
}

bool blocks_possible(const tsr_layout *layout)
{
    return tsr_layout_ndim(layout) <= BLOCKS_DIMS && tsr_mesh_count(tsr_layout_mesh(layout)) <= BLOCKS_RANKS &&
           has_few_intervals(layout);
}

bool blocks_have_dim(const blocks *b, int dim)
{
    return b->ndim - BLOCKS_DIMS + dim >= 0;
}

static tsr_status gather_cuts(blocks *b, int dim)
{
    block_cuts *const cuts = &b->cuts[dim];
    if (!blocks_have_dim(b, dim)) {
        TSR_TRY(add_cut(cuts, 0));
        TSR_TRY(add_cut(cuts, 1));
        cuts->count = 1;
        return TSR_OK;
    }
    for (size_t i = 0; i < b->owner_count; i++) {
        owned *const has = &b->owners[i].dim[dim];
        TSR_TRY(owned_read(b->layout, b->owners[i].coordinate, b->ndim - BLOCKS_DIMS + dim, has));
        for (size_t j = 0; j < has->count; j++) {
            TSR_TRY(add_cut(cuts, has->at[j].begin));
            TSR_TRY(add_cut(cuts, has->at[j].end));
        }
    }
    order_cuts(cuts);
    return TSR_OK;
}

static tsr_status gather(blocks *b)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(b->layout);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do {
        block_owner *const o = &b->owners[b->owner_count++];
        memcpy(o->coordinate, coordinate, sizeof coordinate);
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &o->rank));
    } while (next_coordinate(mesh, coordinate));
    TSR_TRY(gather_cuts(b, 0));
    return gather_cuts(b, 1);
}

tsr_status blocks_read(const tsr_layout *layout, blocks *out)
{
    *out = (blocks){.layout = layout, .ndim = tsr_layout_ndim(layout)};
    const tsr_status status = gather(out);
    if (status != TSR_OK)
        blocks_finish(out);
    return status;
}

void blocks_finish(blocks *b)
{
    for (size_t i = 0; i < b->owner_count; i++)
        for (int d = 0; d < BLOCKS_DIMS; d++)
            free(b->owners[i].dim[d].at);
    for (int d = 0; d < BLOCKS_DIMS; d++)
        free(b->cuts[d].at);
    *b = (blocks){0};
}

static bool owns_along(const blocks *b, const block_owner *owner, int dim, size_t piece)
{
    if (!blocks_have_dim(b, dim))
        return true;
    const int64_t index = b->cuts[dim].at[piece];
    for (size_t i = 0; i < owner->dim[dim].count; i++)
        if (owner->dim[dim].at[i].begin <= index && index < owner->dim[dim].at[i].end)
            return true;
    return false;
}

bool blocks_own(const blocks *b, const block_owner *owner, size_t row, size_t column)
{
    return owns_along(b, owner, 0, row) && owns_along(b, owner, 1, column);
}

/* True if the ranks hold terms of one value: their coordinates differ only in Partial mesh
 * dims. */
static bool share_terms(const blocks *b, const block_owner *one, const block_owner *other)
{
    const tsr_placement *const placements = tsr_layout_placements(b->layout);
    for (int d = 0; d < tsr_mesh_ndim(tsr_layout_mesh(b->layout)); d++)
        if (placements[d].kind != TSR_PARTIAL && one->coordinate[d] != other->coordinate[d])
            return false;
    return true;
}

size_t blocks_name(const blocks *b, size_t row, size_t column, char text[BLOCK_NAME_BYTES])
{
    size_t used = 0;
    bool done[BLOCKS_RANKS] = {false};
    text[0] = '\0';
    for (size_t i = 0; i < b->owner_count; i++) {
        const char *joint = used > 0 ? " " : "";
        for (size_t j = i; j < b->owner_count; j++) {
            const block_owner *const o = &b->owners[j];
            if (done[j] || !blocks_own(b, o, row, column) || !share_terms(b, &b->owners[i], o))
                continue;
            done[j] = true;
            used += (size_t)snprintf(text + used, BLOCK_NAME_BYTES - used, "%s%lld", joint, (long long)o->rank);
            joint = "+";
        }
    }
    return used;
}
