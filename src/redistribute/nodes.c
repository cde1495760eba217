#include "redistribute/nodes.h"

#include "base/checked.h"
#include "mesh/geometry.h"
#include "mesh/grid.h"

/* From so many source pieces a mate on, the regions need not be cut to give everybody the same. */
#define WHOLE_REGIONS 4

tsr_neighbours tsr_neighbours_begin(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst)
{
    const int64_t first = rank - rank % item->ranks_per_node;
    return (tsr_neighbours){&item->problem, src, dst, first, first + item->ranks_per_node};
}

static bool holds(const tsr_neighbours *n, int64_t rank)
{
    int64_t have[TSR_MAX_DIMS];
    return tsr_mesh_locate(n->problem->src.layout->mesh, rank, have) && tsr_problem_holds(n->problem, have, n->src);
}

static bool needs(const tsr_neighbours *n, int64_t rank)
{
    const tsr_side *side = &n->problem->dst;
    int64_t own[TSR_MAX_DIMS];
    if (!tsr_mesh_locate(side->layout->mesh, rank, own) || !tsr_problem_has_value(n->problem, own))
        return false;
    for (int i = 0; i < side->ndim; i++)
        if ((side->roles[i] == TSR_ROLE_CUT || side->roles[i] == TSR_ROLE_KEPT) && own[i] != n->dst[i])
            return false;
    return true;
}

static bool is_mate(const tsr_neighbours *n, int64_t rank)
{
    return needs(n, rank) && !holds(n, rank);
}

static bool advance(tsr_neighbours *n, bool (*wanted)(const tsr_neighbours *n, int64_t rank), int64_t *rank)
{
    while (n->next < n->end) {
        *rank = n->next++;
        if (wanted(n, *rank))
            return true;
    }
    return false;
}

bool tsr_neighbours_holder(tsr_neighbours *n, int64_t *rank)
{
    return advance(n, holds, rank);
}

bool tsr_neighbours_mate(tsr_neighbours *n, int64_t *rank)
{
    return advance(n, is_mate, rank);
}

bool tsr_neighbours_owner(tsr_neighbours *n, int64_t *rank)
{
    return advance(n, needs, rank);
}

/* Homes take the owners in turn. */
int64_t tsr_nodes_relay(const tsr_item *item, int64_t home, int64_t rank, const int64_t *dst)
{
    int64_t owners = 0, owner = -1;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, dst); tsr_neighbours_owner(&n, &owner);)
        owners++;
    tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, dst);
    for (int64_t i = 0; i <= home % owners; i++)
        (void)tsr_neighbours_owner(&n, &owner);
    return owner;
}

static int64_t nth_holder(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst, int64_t n)
{
    tsr_neighbours walk = tsr_neighbours_begin(item, rank, src, dst);
    int64_t holder = -1;
    for (int64_t i = 0; i <= n; i++)
        if (!tsr_neighbours_holder(&walk, &holder))
            return -1;
    return holder;
}

/* The holders of a node serve its mates in turn. */
tsr_supply tsr_supply_of(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst)
{
    tsr_supply supply = {-1, 0, 0};
    int64_t other, holders = 0;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, src, dst); tsr_neighbours_holder(&n, &other);)
        holders++;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, src, dst); tsr_neighbours_mate(&n, &other); supply.mates++)
        supply.place = other == rank ? supply.mates : supply.place;
    if (holders > 0)
        supply.holder = nth_holder(item, rank, src, dst, supply.place % holders);
    return supply;
}

/* An uncut region, or nothing of it. */
static tsr_part whole(bool taken)
{
    return (tsr_part){-1, 0, taken};
}

tsr_part tsr_supply_part(const tsr_item *item, const int64_t *shape, const int64_t *src, int64_t place, int64_t mates)
{
    const tsr_side *side = &item->problem.src;
    if (!item->shares || mates == 1)
        return whole(true);
    if (tsr_side_count(side, TSR_ROLE_CUT) >= WHOLE_REGIONS * item->ranks_per_node)
        return whole(tsr_side_encode(side, TSR_ROLE_CUT, src) % mates == place);
    const tsr_homes sharers = {.count = mates};
    const tsr_sharing sharing = tsr_homes_share(&sharers, &item->problem, shape);
    return tsr_sharing_part(&sharing, place);
}

/* The lowest and the highest rank of a mesh. */
static void find_ends(const tsr_mesh *mesh, int64_t *lowest, int64_t *highest)
{
    const tsr_grid *grid = tsr_mesh_grid(mesh);
    *lowest = *highest = grid->list ? grid->list[grid->sorted[0]] : grid->lowest;
    if (grid->list)
        *highest = grid->list[grid->sorted[grid->count - 1]];
    for (int dim = 0; !grid->list && dim < grid->ndim; dim++)
        *highest += (grid->strides[dim] < 0 ? -grid->strides[dim] : grid->strides[dim]) * (grid->shape[dim] - 1);
}

bool tsr_nodes_matter(const tsr_item *item, int64_t ranks_per_node)
{
    int64_t lowest[2], highest[2];
    if (ranks_per_node == 0)
        return false;
    find_ends(item->src->mesh, &lowest[0], &highest[0]);
    find_ends(item->dst->mesh, &lowest[1], &highest[1]);
    return tsr_min_i64(lowest[0], lowest[1]) / ranks_per_node != tsr_max_i64(highest[0], highest[1]) / ranks_per_node;
}

bool tsr_nodes_has_mates(const tsr_item *item, const int64_t *dst)
{
    int64_t owners = 0, owner;
    tsr_neighbours n = tsr_neighbours_begin(item, tsr_mesh_rank(item->dst->mesh, dst), NULL, dst);
    while (owners < 2 && tsr_neighbours_owner(&n, &owner))
        owners++;
    return owners == 2;
}
