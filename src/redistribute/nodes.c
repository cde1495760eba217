#include "redistribute/nodes.h"

#include "mesh/geometry.h"

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

bool tsr_neighbours_holder(tsr_neighbours *n, int64_t *rank)
{
    while (n->next < n->end) {
        *rank = n->next++;
        if (holds(n, *rank))
            return true;
    }
    return false;
}

bool tsr_neighbours_mate(tsr_neighbours *n, int64_t *rank)
{
    while (n->next < n->end) {
        *rank = n->next++;
        if (needs(n, *rank) && !holds(n, *rank))
            return true;
    }
    return false;
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

/* True if all ranks of a mesh are in a node; more ranks than a node has are not looked at. */
static bool is_within(const tsr_mesh *mesh, int64_t node, int64_t ranks_per_node)
{
    const int64_t count = tsr_mesh_count(mesh);
    if (count > ranks_per_node)
        return false;
    for (int64_t i = 0; i < count; i++) {
        int64_t coordinate[TSR_MAX_DIMS], rest = i;
        for (int dim = tsr_mesh_ndim(mesh) - 1; dim >= 0; dim--) {
            coordinate[dim] = rest % tsr_mesh_shape(mesh)[dim];
            rest /= tsr_mesh_shape(mesh)[dim];
        }
        if (tsr_mesh_rank(mesh, coordinate) / ranks_per_node != node)
            return false;
    }
    return true;
}

bool tsr_nodes_matter(const tsr_item *item, int64_t ranks_per_node)
{
    const int64_t first[TSR_MAX_DIMS] = {0};
    const int64_t node = ranks_per_node > 0 ? tsr_mesh_rank(item->src->mesh, first) / ranks_per_node : 0;
    return ranks_per_node > 0 && !(is_within(item->src->mesh, node, ranks_per_node) && is_within(item->dst->mesh, node, ranks_per_node));
}

int64_t tsr_nodes_copies(const tsr_item *item, const int64_t *dst)
{
    int64_t rank = tsr_mesh_rank(item->dst->mesh, dst), copies = 0;
    tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, dst);
    for (; n.next < n.end; n.next++)
        copies += needs(&n, n.next);
    return copies;
}
