#include "redistribute/match/confined.h"

#include "comm/core/traits.h"
#include "comm/groups/group.h"
#include "mesh/mesh.h"
#include "placement/placement.h"
#include "redistribute/match/problem.h"

/* Called for each rank of a mesh in row-major order; false ends the walk. */
typedef bool visit(const void *arg, int64_t rank, const int64_t *coordinate);

static bool visit_all(const tsr_mesh *mesh, visit *see, const void *arg)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do {
        if (!see(arg, tsr_mesh_rank(mesh, coordinate), coordinate))
            return false;
    } while (tsr_grid_next(tsr_mesh_grid(mesh), coordinate));
    return true;
}

/* What a visit compares a rank with. */
typedef struct surroundings {
    const tsr_comm *comm;
    const tsr_node_map *nodes;
    const tsr_mesh *mesh;
    bool varies[TSR_MAX_DIMS]; /* mesh dims along which ranks exchange */
    int node;                  /* the communicator's node in which all ranks must be */
} surroundings;

static bool is_in_reach(const tsr_comm *comm, int64_t rank)
{
    return rank < tsr_comm_size(comm);
}

static bool is_in_node(const void *arg, int64_t rank, const int64_t *coordinate)
{
    const surroundings *s = arg;
    (void)coordinate;
    return is_in_reach(s->comm, rank) && tsr_comm_node_of(s->comm, (int)rank) == s->node;
}

static bool are_in_one_node(const tsr_comm *comm, const tsr_mesh *src, const tsr_mesh *dst)
{
    const int64_t origin[TSR_MAX_DIMS] = {0}, first = tsr_mesh_rank(src, origin);
    if (!is_in_reach(comm, first))
        return false;
    const surroundings s = {.comm = comm, .node = tsr_comm_node_of(comm, (int)first)};
    return visit_all(src, is_in_node, &s) && visit_all(dst, is_in_node, &s);
}

/* True if the rank's node in the plan lies in one node of the communicator and holds the rank's
 * line: the ranks that differ from this rank only in the dims that vary. */
static bool is_with_its_line(const void *arg, int64_t rank, const int64_t *coordinate)
{
    const surroundings *s = arg;
    int64_t first[TSR_MAX_DIMS];
    const int64_t node = tsr_node_map_find(s->nodes, rank);
    if (!is_in_reach(s->comm, rank) || (s->nodes->each == 0 && node >= s->nodes->count))
        return false;
    const int64_t lowest = tsr_node_map_member(s->nodes, tsr_node_map_range(s->nodes, node).begin);
    for (int i = 0; i < tsr_mesh_ndim(s->mesh); i++)
        first[i] = s->varies[i] ? 0 : coordinate[i];
    return tsr_comm_node_of(s->comm, (int)lowest) == tsr_comm_node_of(s->comm, (int)rank) &&
           tsr_node_map_find(s->nodes, tsr_mesh_rank(s->mesh, first)) == node;
}

/*
 * True if every line along the dims that vary holds all that its own ranks need. It does if on
 * every tensor dim the other cuts come first, for these give the line one piece of the tensor on
 * both sides. Ranks take from a copy in their own node, so lines that are replicas of one another
 * exchange nothing, except in a reduction, whose work replicas share.
 */
static bool lines_suffice(const tsr_problem *problem, bool *varies)
{
    for (int i = 0; i < problem->src.ndim; i++) {
        const int twin = problem->src.twin[i];
        varies[i] = twin >= 0 &&
                    !tsr_placement_same(&problem->src.layout->placements[i], &problem->dst.layout->placements[twin]);
        if (problem->reduces && twin >= 0 && !varies[i] && problem->src.roles[i] == TSR_ROLE_FREE)
            return false;
    }
    return tsr_problem_kept_cuts_lead(problem, varies);
}

static bool is_confined(const tsr_comm *comm, const tsr_node_map *nodes, const tsr_layout *src, const tsr_layout *dst)
{
    tsr_problem problem;
    surroundings s = {.comm = comm, .nodes = nodes, .mesh = src->mesh};
    if (are_in_one_node(comm, src->mesh, dst->mesh))
        return true;
    tsr_problem_init(&problem, src, dst);
    return nodes && problem.same_mesh && lines_suffice(&problem, s.varies) &&
           visit_all(src->mesh, is_with_its_line, &s);
}

bool tsr_move_is_direct(const tsr_comm *comm, const tsr_node_map *nodes, bool no_split, const tsr_layout *src,
                        const tsr_layout *dst)
{
    if (tsr_comm_is_direct(comm))
        return true;
    return !no_split && tsr_comm_has_direct_nodes(comm) && is_confined(comm, nodes, src, dst);
}
