#include "redistribute/turn.h"

/* What a destination coordinate must be on each mesh dim to be counted: -1 is anything. Owners are counted with the source's cuts fixed. */
typedef struct filter {
    int64_t fixed[TSR_MAX_DIMS];
} filter;

/* How one mesh dim bounds the coordinates that come before the receiver's when the first difference is at mesh dim `at`. */
static bool comes_before(const int64_t *candidate, const int64_t *receiver, int mesh_dim, int at)
{
    if (mesh_dim < at)
        return candidate[mesh_dim] == receiver[mesh_dim];
    return mesh_dim > at || candidate[mesh_dim] < receiver[mesh_dim];
}

static int64_t count_keys(const tsr_problem *problem, const tsr_piece *piece, int dim, const int64_t *receiver, int at, const filter *f)
{
    const tsr_layout *layout = problem->dst.layout;
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    int64_t count = 0;
    for (size_t g = 0; g < piece->dims[dim]->group_count; g++) {
        int64_t candidate[TSR_MAX_DIMS];
        tsr_cut_unkey(layout, dim, piece->dims[dim]->groups[g].key, candidate);
        bool counts = true;
        for (int i = 0; i < cuts->count && counts; i++) {
            const int m = cuts->mesh_dim[i];
            counts = comes_before(candidate, receiver, m, at) && (f->fixed[m] < 0 || f->fixed[m] == candidate[m]);
        }
        count += counts;
    }
    return count;
}

/* Mesh dims that cut nothing: a free one may have any coordinate, a kept one only the receiver's, a new sum or prod only 0. */
static int64_t count_uncut(const tsr_problem *problem, int m, const int64_t *receiver, int at, const filter *f)
{
    if (m < at)
        return f->fixed[m] < 0 || f->fixed[m] == receiver[m];
    if (problem->dst.roles[m] != TSR_ROLE_FREE)
        return m > at && (f->fixed[m] < 0 || f->fixed[m] == receiver[m]);
    if (f->fixed[m] >= 0)
        return m > at || f->fixed[m] < receiver[m];
    return m > at ? problem->dst.shape[m] : receiver[m];
}

static int64_t count_before(const tsr_problem *problem, const tsr_piece *piece, const int64_t *receiver, const filter *f)
{
    int64_t before = 0;
    for (int at = 0; at < problem->dst.ndim; at++) {
        int64_t count = 1;
        for (int m = 0; m < problem->dst.ndim && count > 0; m++)
            if (problem->dst.roles[m] != TSR_ROLE_CUT)
                count *= count_uncut(problem, m, receiver, at, f);
        for (int dim = 0; dim < problem->dst.layout->ndim && count > 0; dim++)
            count *= count_keys(problem, piece, dim, receiver, at, f);
        before += count;
    }
    return before;
}

int64_t tsr_turn(const tsr_problem *problem, const tsr_piece *piece, const int64_t *receiver)
{
    filter f;
    for (int i = 0; i < TSR_MAX_DIMS; i++)
        f.fixed[i] = -1;
    const int64_t all = count_before(problem, piece, receiver, &f);
    if (!problem->same_mesh)
        return all;
    for (int i = 0; i < problem->src.ndim; i++)
        if (problem->src.roles[i] == TSR_ROLE_CUT)
            f.fixed[problem->src.twin[i]] = piece->coordinate[i];
    return all - count_before(problem, piece, receiver, &f);
}
