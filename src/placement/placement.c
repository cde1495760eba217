#include "placement/placement.h"

#include "base/checked.h"

#include <string.h>

tsr_placement tsr_replicate(void)
{
    return (tsr_placement){.kind = TSR_REPLICATE, .order = TSR_ORDER_DEFAULT};
}

tsr_placement tsr_shard(int dim)
{
    return (tsr_placement){.kind = TSR_SHARD, .dim = dim, .order = TSR_ORDER_DEFAULT};
}

tsr_placement tsr_partial(tsr_reduce_op op)
{
    return (tsr_placement){.kind = TSR_PARTIAL, .order = TSR_ORDER_DEFAULT, .op = op};
}

static bool numbers_same(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

bool tsr_placement_same(const tsr_placement *a, const tsr_placement *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TSR_REPLICATE)
        return true;
    if (a->kind == TSR_PARTIAL)
        return a->op == b->op;
    return a->dim == b->dim && !a->balanced == !b->balanced &&
           tsr_max_i64(a->interleave, 1) == tsr_max_i64(b->interleave, 1) &&
           tsr_max_i64(a->unit, 1) == tsr_max_i64(b->unit, 1) &&
           numbers_same(a->sizes, a->size_count, b->sizes, b->size_count) &&
           numbers_same(a->blocks, a->block_count, b->blocks, b->block_count);
}

int tsr_placement_order(const tsr_placement *placements, int mesh_dim)
{
    return placements[mesh_dim].order == TSR_ORDER_DEFAULT ? mesh_dim : placements[mesh_dim].order;
}

int tsr_placements_order(const tsr_placement *placements, int count, int dim, int *sorted, bool *equal)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        if (placements[i].kind != TSR_SHARD || placements[i].dim != dim)
            continue;
        int at = found++;
        for (; at > 0 && tsr_placement_order(placements, sorted[at - 1]) > tsr_placement_order(placements, i); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = i;
    }
    for (int i = 1; equal && i < found; i++)
        *equal |= tsr_placement_order(placements, sorted[i - 1]) == tsr_placement_order(placements, sorted[i]);
    return found;
}

int tsr_placement_said_order(const tsr_placement *placements, int count, int mesh_dim)
{
    int sorted[TSR_MAX_DIMS], place = -1;
    const int cuts = tsr_placements_order(placements, count, placements[mesh_dim].dim, sorted, NULL);
    bool ascending = true;
    for (int i = 0; i < cuts; i++) {
        ascending = ascending && (i == 0 || sorted[i - 1] < sorted[i]);
        place = sorted[i] == mesh_dim ? i : place;
    }
    return ascending ? TSR_ORDER_DEFAULT : place;
}
