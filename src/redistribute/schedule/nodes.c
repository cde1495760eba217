#include "redistribute/schedule/nodes.h"

#include "base/checked.h"
#include "mesh/grid.h"
#include "mesh/mesh.h"

#include <string.h>

/* With at least this many source pieces per mate, whole regions are dealt out instead of cutting
 * each. */
#define WHOLE_REGIONS 4

/* How many places, spread over the destination's mesh, are checked for ranks of one node that own
 * the same piece; where nodes are listed, as many of the largest node are checked too. */
#define PLACES 16

/* Looking at this many ranks takes as long as listing one entry (placement/meter.h). */
#define RANKS_OF_ENTRY 64

tsr_neighbours tsr_neighbours_begin(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst)
{
    const bool sparse =
        item->nodes->each > tsr_mesh_grid(item->src->mesh)->count + tsr_mesh_grid(item->dst->mesh)->count;
    return (tsr_neighbours){item, src, dst, sparse,
                            tsr_node_map_range(item->nodes, tsr_node_map_find(item->nodes, rank))};
}

tsr_status tsr_nodes_take(const tsr_item *item, int64_t rank)
{
    const tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, NULL);
    const int64_t in_meshes = tsr_mesh_grid(item->src->mesh)->count + tsr_mesh_grid(item->dst->mesh)->count;
    return tsr_meter_take(item->meter, tsr_ceil_div(tsr_min_i64(n.left.end - n.left.begin, in_meshes), RANKS_OF_ENTRY));
}

static bool holds(const tsr_neighbours *n, int64_t rank)
{
    const tsr_problem *problem = &n->item->problem;
    int64_t have[TSR_MAX_DIMS];
    return tsr_mesh_locate(problem->src.layout->mesh, rank, have) && tsr_problem_holds(problem, have, n->src);
}

static bool needs(const tsr_neighbours *n, int64_t rank)
{
    const tsr_problem *problem = &n->item->problem;
    const tsr_side *side = &problem->dst;
    int64_t own[TSR_MAX_DIMS];
    if (!tsr_mesh_locate(side->layout->mesh, rank, own) || !tsr_problem_has_value(problem, own))
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

bool tsr_neighbours_next(tsr_neighbours *n, int64_t *rank)
{
    if (n->sparse)
        n->left.begin = tsr_min_i64(tsr_grid_from(tsr_mesh_grid(n->item->src->mesh), n->left.begin),
                                    tsr_grid_from(tsr_mesh_grid(n->item->dst->mesh), n->left.begin));
    if (n->left.begin >= n->left.end)
        return false;
    *rank = tsr_node_map_member(n->item->nodes, n->left.begin++);
    return true;
}

static bool advance_to_wanted(tsr_neighbours *n, bool (*wanted)(const tsr_neighbours *n, int64_t rank), int64_t *rank)
{
    while (tsr_neighbours_next(n, rank))
        if (wanted(n, *rank))
            return true;
    return false;
}

bool tsr_neighbours_holder(tsr_neighbours *n, int64_t *rank)
{
    return advance_to_wanted(n, holds, rank);
}

bool tsr_neighbours_mate(tsr_neighbours *n, int64_t *rank)
{
    return advance_to_wanted(n, is_mate, rank);
}

bool tsr_neighbours_owner(tsr_neighbours *n, int64_t *rank)
{
    return advance_to_wanted(n, needs, rank);
}

/* Homes take the node's owners in turn, by the homes' places among all ranks listed node by
 * node. */
int64_t tsr_nodes_relay(const tsr_item *item, int64_t home, int64_t rank, const int64_t *dst)
{
    int64_t owners = 0, owner = -1;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, dst); tsr_neighbours_owner(&n, &owner);)
        owners++;
    tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, dst);
    for (int64_t i = 0; i <= tsr_node_map_place(item->nodes, home) % owners; i++)
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

/* The source piece's number among all pieces. Where nodes are listed, and may hold any pieces, it
 * is lowered by the ranks of the node that hold a piece of a lower number: that numbers the pieces
 * that the node lacks, so that whole regions are dealt out evenly there. */
static int64_t number_piece(const tsr_item *item, int64_t rank, const int64_t *src)
{
    const tsr_side *side = &item->problem.src;
    const int64_t among_all = tsr_side_encode(side, TSR_ROLE_CUT, src);
    int64_t number = among_all, other, have[TSR_MAX_DIMS];
    if (item->nodes->each > 0)
        return among_all;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, NULL); tsr_neighbours_next(&n, &other);)
        number -=
            tsr_mesh_locate(side->layout->mesh, other, have) && tsr_side_encode(side, TSR_ROLE_CUT, have) < among_all;
    return number;
}

/* The holders of a node serve its mates in turn. */
tsr_supply tsr_supply_of(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst)
{
    tsr_supply supply = {-1, 0, 0, 0};
    int64_t other, holders = 0;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, src, dst); tsr_neighbours_holder(&n, &other);)
        holders++;
    for (tsr_neighbours n = tsr_neighbours_begin(item, rank, src, dst); tsr_neighbours_mate(&n, &other); supply.mates++)
        supply.place = other == rank ? supply.mates : supply.place;
    if (holders > 0)
        supply.holder = nth_holder(item, rank, src, dst, supply.place % holders);
    else if (item->shares)
        supply.number = number_piece(item, rank, src);
    return supply;
}

/* The remainder, 0 or more. A piece's number may be negative, where several ranks of a node hold
 * one piece of a lower number. */
static int64_t modulo(int64_t number, int64_t divisor)
{
    return (number % divisor + divisor) % divisor;
}

/* The part that is all of an uncut region, or nothing of it. */
static tsr_part whole(bool taken)
{
    return (tsr_part){-1, 0, taken};
}

tsr_part tsr_supply_part(const tsr_item *item, const int64_t *shape, const tsr_supply *supply, int64_t place)
{
    if (!item->shares || supply->mates == 1)
        return whole(true);
    if (tsr_side_count(&item->problem.src, TSR_ROLE_CUT) >= WHOLE_REGIONS * supply->mates)
        return whole(modulo(supply->number, supply->mates) == place);
    const tsr_homes sharers = {.count = supply->mates};
    const tsr_sharing sharing = tsr_homes_share(&sharers, &item->problem, shape);
    return tsr_sharing_part(&sharing, place);
}

/* True if some rank of the mesh is not in `node`. Looks at no more ranks than the node has, and
 * one. */
static bool leaves_node(const tsr_mesh *mesh, const tsr_node_map *nodes, int64_t node)
{
    const tsr_grid *grid = tsr_mesh_grid(mesh);
    for (int64_t position = 0; position < grid->count; position++) {
        int64_t coordinate[TSR_MAX_DIMS];
        tsr_grid_coordinate(grid, position, coordinate);
        if (tsr_node_map_find(nodes, tsr_grid_rank(grid, coordinate)) != node)
            return true;
    }
    return false;
}

/* Nodes that are not listed hold consecutive ranks, so that the lowest and the highest rank are
 * enough. */
bool tsr_nodes_matter(const tsr_item *item, const tsr_node_map *nodes)
{
    int64_t lowest[2], highest[2];
    if (!nodes)
        return false;
    tsr_grid_ends(tsr_mesh_grid(item->src->mesh), &lowest[0], &highest[0]);
    tsr_grid_ends(tsr_mesh_grid(item->dst->mesh), &lowest[1], &highest[1]);
    const int64_t first = tsr_node_map_find(nodes, tsr_min_i64(lowest[0], lowest[1]));
    if (first != tsr_node_map_find(nodes, tsr_max_i64(highest[0], highest[1])))
        return true;
    return nodes->each == 0 &&
           (leaves_node(item->src->mesh, nodes, first) || leaves_node(item->dst->mesh, nodes, first));
}

/* True if two owners of the piece at `dst` are in the node of `rank`. Looks at the ranks of the
 * node. */
static bool has_two_in(const tsr_item *item, int64_t rank, const int64_t *dst)
{
    int64_t owners = 0, owner;
    tsr_neighbours n = tsr_neighbours_begin(item, rank, NULL, dst);
    while (owners < 2 && tsr_neighbours_owner(&n, &owner))
        owners++;
    return owners == 2;
}

/* True if two owners of the piece at `dst` are in the node of `rank`. Looks at the owners of the
 * piece. */
static bool has_two_of(const tsr_item *item, int64_t rank, const int64_t *dst)
{
    const tsr_side *side = &item->problem.dst;
    const int64_t count = tsr_side_count(side, TSR_ROLE_FREE);
    int64_t owners = 0, own[TSR_MAX_DIMS];
    memcpy(own, dst, (size_t)side->ndim * sizeof *own);
    for (int64_t i = 0; i < count && owners < 2; i++) {
        tsr_side_decode(side, TSR_ROLE_FREE, i, own);
        owners += tsr_nodes_same(item, tsr_mesh_rank(side->layout->mesh, own), rank);
    }
    return owners == 2;
}

/* True if another rank in the node of the rank at `dst`, which holds the value, owns its
 * destination piece too. Looks at the node, or at the piece's owners, whichever are fewer. */
static bool has_mates(const tsr_item *item, const int64_t *dst)
{
    const int64_t rank = tsr_mesh_rank(item->dst->mesh, dst);
    const tsr_node_range node = tsr_node_map_range(item->nodes, tsr_node_map_find(item->nodes, rank));
    const bool few = tsr_side_count(&item->problem.dst, TSR_ROLE_FREE) < node.end - node.begin;
    return few ? has_two_of(item, rank, dst) : has_two_in(item, rank, dst);
}

/* Place number `i` of at most PLACES that are spread over `count`. */
static int64_t spread(int64_t count, int64_t i)
{
    return count <= PLACES ? i : i * (count - 1) / (PLACES - 1);
}

static bool largest_has_mates(const tsr_item *item)
{
    const tsr_node_range node = tsr_node_map_range(item->nodes, item->nodes->largest);
    const int64_t count = node.end - node.begin, places = tsr_min_i64(count, PLACES);
    for (int64_t i = 0; i < places; i++) {
        int64_t dst[TSR_MAX_DIMS];
        const int64_t rank = tsr_node_map_member(item->nodes, node.begin + spread(count, i));
        if (tsr_mesh_locate(item->dst->mesh, rank, dst) && tsr_problem_has_value(&item->problem, dst) &&
            has_mates(item, dst))
            return true;
    }
    return false;
}

bool tsr_nodes_have_mates(const tsr_item *item)
{
    const tsr_grid *grid = tsr_mesh_grid(item->dst->mesh);
    const int64_t places = tsr_min_i64(grid->count, PLACES);
    if (tsr_side_count(&item->problem.dst, TSR_ROLE_FREE) == 1)
        return false;
    for (int64_t i = 0; i < places; i++) {
        int64_t dst[TSR_MAX_DIMS];
        tsr_grid_coordinate(grid, spread(grid->count, i), dst);
        if (tsr_problem_has_value(&item->problem, dst) && has_mates(item, dst))
            return true;
    }
    return item->nodes->each == 0 && largest_has_mates(item);
}
