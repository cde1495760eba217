#include "redistribute/match/problem.h"

#include "mesh/grid.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/placement.h"

static void init_side(tsr_side *side, const tsr_layout *layout)
{
    *side = (tsr_side){.layout = layout, .shape = tsr_mesh_shape(layout->mesh), .ndim = layout->mesh_ndim};
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        side->twin[i] = -1;
}

static void find_twins(tsr_side *a, tsr_side *b)
{
    int j = 0;
    for (int i = 0; i < a->ndim; i++) {
        if (a->shape[i] == 1)
            continue;
        while (b->shape[j] == 1)
            j++;
        a->twin[i] = j;
        b->twin[j++] = i;
    }
}

static bool is_kept(const tsr_side *side, const tsr_side *other, int mesh_dim)
{
    const int twin = side->twin[mesh_dim];
    return twin >= 0 && tsr_layout_kind(other->layout, twin) == TSR_PARTIAL &&
           other->layout->placements[twin].op == side->layout->placements[mesh_dim].op;
}

static bool is_sum_or_prod(tsr_reduce_op op)
{
    return op == TSR_SUM || op == TSR_PROD;
}

static void give_roles(tsr_side *side, const tsr_side *other, bool is_source)
{
    for (int i = 0; i < side->ndim; i++) {
        const tsr_placement_kind kind = tsr_layout_kind(side->layout, i);
        if (kind == TSR_SHARD)
            side->roles[i] = TSR_ROLE_CUT;
        else if (kind == TSR_REPLICATE)
            side->roles[i] = TSR_ROLE_FREE;
        else if (is_kept(side, other, i))
            side->roles[i] = TSR_ROLE_KEPT;
        else if (is_source)
            side->roles[i] = TSR_ROLE_REDUCED;
        else
            side->roles[i] = is_sum_or_prod(side->layout->placements[i].op) ? TSR_ROLE_ZERO : TSR_ROLE_FREE;
    }
}

/* How many leading cuts of tensor dim `dim` both sides share, cut for cut on twin mesh dims. */
static int common_cuts(const tsr_problem *problem, int dim)
{
    const tsr_layout *src = problem->src.layout, *dst = problem->dst.layout;
    const tsr_dim_cuts *a = &src->dims[dim], *b = &dst->dims[dim];
    int i = 0;
    while (i < a->count && i < b->count && problem->src.twin[a->mesh_dim[i]] == b->mesh_dim[i] &&
           tsr_placement_same(&src->placements[a->mesh_dim[i]], &dst->placements[b->mesh_dim[i]]))
        i++;
    return i;
}

bool tsr_problem_cuts_nest(const tsr_problem *problem, bool dst_inside_src)
{
    for (int dim = 0; dim < problem->src.layout->ndim; dim++) {
        const tsr_layout *outer = dst_inside_src ? problem->src.layout : problem->dst.layout;
        if (common_cuts(problem, dim) != outer->dims[dim].count)
            return false;
    }
    return true;
}

/* Leading cuts that both sides share do not vary; every cut behind them must. */
bool tsr_problem_kept_cuts_lead(const tsr_problem *problem, const bool *varies)
{
    const tsr_layout *src = problem->src.layout;
    for (int dim = 0; dim < src->ndim; dim++)
        for (int i = common_cuts(problem, dim); i < src->dims[dim].count; i++)
            if (!varies[src->dims[dim].mesh_dim[i]])
                return false;
    return true;
}

/* True if some mesh dims go from Shard to Partial(sum), all others keep their placement, and on
 * every tensor dim the removed cuts are innermost. */
static bool takes_shortcut(const tsr_problem *problem)
{
    bool any = false;
    for (int i = 0; i < problem->src.ndim; i++) {
        const int twin = problem->src.twin[i];
        if (twin < 0)
            continue;
        const tsr_placement *a = &problem->src.layout->placements[i], *b = &problem->dst.layout->placements[twin];
        if (a->kind == TSR_SHARD && b->kind == TSR_PARTIAL && b->op == TSR_SUM)
            any = true;
        else if (!tsr_placement_same(a, b))
            return false;
    }
    return any && tsr_problem_cuts_nest(problem, false);
}

static void describe_reduction(tsr_problem *problem)
{
    const tsr_side *src = &problem->src, *dst = &problem->dst;
    problem->divisor = 1;
    for (int i = 0; i < src->ndim; i++) {
        if (src->roles[i] != TSR_ROLE_REDUCED)
            continue;
        const tsr_reduce_op op = src->layout->placements[i].op;
        problem->reduces = true;
        problem->op = op == TSR_AVG ? TSR_SUM : op;
        problem->divisor *= op == TSR_AVG ? src->shape[i] : 1;
    }
    for (int i = 0; i < dst->ndim; i++)
        if (dst->roles[i] == TSR_ROLE_ZERO)
            problem->fill = dst->layout->placements[i].op;
    problem->terms = tsr_side_count(src, TSR_ROLE_REDUCED);
    problem->replicas = tsr_side_count(src, TSR_ROLE_FREE);
}

static bool are_disjoint(const tsr_mesh *a, const tsr_mesh *b)
{
    int64_t lowest[2], highest[2];
    tsr_grid_ends(tsr_mesh_grid(a), &lowest[0], &highest[0]);
    tsr_grid_ends(tsr_mesh_grid(b), &lowest[1], &highest[1]);
    return highest[0] < lowest[1] || highest[1] < lowest[0];
}

static bool is_local(const tsr_problem *problem)
{
    return problem->shortcut || (problem->same_mesh && !problem->reduces && tsr_problem_cuts_nest(problem, true));
}

void tsr_problem_restrict(tsr_problem *problem, const tsr_problem *given)
{
    problem->shortcut = given->shortcut;
    problem->in_place = given->in_place;
    problem->local = is_local(problem);
}

void tsr_problem_init(tsr_problem *problem, const tsr_layout *src, const tsr_layout *dst)
{
    *problem = (tsr_problem){.op = TSR_SUM, .fill = TSR_SUM};
    init_side(&problem->src, src);
    init_side(&problem->dst, dst);
    problem->same_mesh = tsr_mesh_equal(src->mesh, dst->mesh);
    if (problem->same_mesh)
        find_twins(&problem->src, &problem->dst);
    else
        problem->disjoint = are_disjoint(src->mesh, dst->mesh);
    give_roles(&problem->src, &problem->dst, true);
    give_roles(&problem->dst, &problem->src, false);
    describe_reduction(problem);
    if (!problem->same_mesh)
        return;
    problem->shortcut = takes_shortcut(problem);
    problem->local = is_local(problem);
    problem->in_place = tsr_problem_cuts_nest(problem, true) && tsr_problem_cuts_nest(problem, false);
}

bool tsr_problem_each_is_possible(const tsr_problem *problem)
{
    return problem->same_mesh && problem->reduces && tsr_problem_cuts_nest(problem, true) &&
           tsr_side_count(&problem->dst, TSR_ROLE_FREE) > 1;
}

bool tsr_problem_holds(const tsr_problem *problem, const int64_t *have, const int64_t *want)
{
    for (int i = 0; i < problem->src.ndim; i++)
        if ((problem->src.roles[i] == TSR_ROLE_CUT || problem->src.roles[i] == TSR_ROLE_KEPT) && have[i] != want[i])
            return false;
    return true;
}

bool tsr_problem_has_value(const tsr_problem *problem, const int64_t *dst)
{
    for (int i = 0; i < problem->dst.ndim; i++)
        if (problem->dst.roles[i] == TSR_ROLE_ZERO && dst[i] != 0)
            return false;
    return true;
}

void tsr_side_decode_dims(const tsr_side *side, const bool *dims, int64_t index, int64_t *coordinate)
{
    for (int i = side->ndim - 1; i >= 0; i--) {
        if (!dims[i])
            continue;
        coordinate[i] = index % side->shape[i];
        index /= side->shape[i];
    }
}

void tsr_side_decode(const tsr_side *side, tsr_role role, int64_t index, int64_t *coordinate)
{
    bool dims[TSR_MAX_DIMS];
    for (int i = 0; i < side->ndim; i++)
        dims[i] = side->roles[i] == role;
    tsr_side_decode_dims(side, dims, index, coordinate);
}

int64_t tsr_side_encode(const tsr_side *side, tsr_role role, const int64_t *coordinate)
{
    int64_t index = 0;
    for (int i = 0; i < side->ndim; i++)
        if (side->roles[i] == role)
            index = index * side->shape[i] + coordinate[i];
    return index;
}

int64_t tsr_side_count(const tsr_side *side, tsr_role role)
{
    int64_t count = 1;
    for (int i = 0; i < side->ndim; i++)
        if (side->roles[i] == role)
            count *= side->shape[i];
    return count;
}
