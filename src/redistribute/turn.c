#include "redistribute/turn.h"

/* What a destination coordinate must be on each mesh dim to be counted: -1 is anything. Owners are counted with the source's cuts fixed. */
typedef struct filter {
    bool owners; /* these are counted, else all */
    int64_t fixed[TSR_MAX_DIMS];
} filter;

/* The first group whose key is not below `key`. */
static size_t find_group(const tsr_overlap *overlap, int64_t key)
{
    size_t low = 0, high = overlap->group_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (overlap->groups[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where owners are counted, the coordinates of mesh dims that both sides cut are the source piece's. */
static bool is_fixed(const tsr_problem *problem, int mesh_dim)
{
    const int twin = problem->dst.twin[mesh_dim];
    return twin >= 0 && problem->src.roles[twin] == TSR_ROLE_CUT;
}

/* Mesh dims from `from` on that cut tensor dim `dim`: true if one of them is fixed where owners are counted. */
static bool any_fixed(const tsr_problem *problem, int dim, int from)
{
    for (int m = from; m < problem->dst.ndim; m++)
        if (tsr_cuts_dim(problem->dst.layout, m, dim) && is_fixed(problem, m))
            return true;
    return false;
}

static bool needs_marks(const tsr_problem *problem, int dim)
{
    for (int m = 0; m < problem->dst.ndim; m++)
        if (tsr_cuts_dim(problem->dst.layout, m, dim) && !is_fixed(problem, m))
            return any_fixed(problem, dim, m + 1);
    return false;
}

static bool is_owner(const tsr_problem *problem, const int64_t *src, int dim, int64_t key)
{
    int64_t candidate[TSR_MAX_DIMS];
    tsr_cut_unkey(problem->dst.layout, dim, key, candidate);
    for (int m = 0; m < problem->dst.ndim; m++)
        if (tsr_cuts_dim(problem->dst.layout, m, dim) && is_fixed(problem, m) && candidate[m] != src[problem->dst.twin[m]])
            return false;
    return true;
}

void tsr_turn_prepare(const tsr_problem *problem, const int64_t *src, int dim, tsr_overlap *overlap)
{
    if (!needs_marks(problem, dim))
        return;
    overlap->marked = 0;
    for (size_t g = 0; g < overlap->group_count; g++) {
        overlap->groups[g].marked = overlap->marked;
        overlap->marked += is_owner(problem, src, dim, overlap->groups[g].key);
    }
}

static int64_t count_marked(const tsr_overlap *overlap, size_t first, size_t end)
{
    if (first == overlap->group_count)
        return 0;
    const size_t before = overlap->groups[first].marked;
    return (int64_t)((end == overlap->group_count ? overlap->marked : overlap->groups[end].marked) - before);
}

/* The keys whose coordinates come before the receiver's with the first difference at mesh dim `at`. Keys are row-major and sorted, so they
 * are a range, and counting it takes two searches; where the filter fixes a coordinate behind one that is free, it is the marked ones that
 * count. */
static int64_t count_keys(const tsr_problem *problem, const tsr_piece *piece, int dim, const int64_t *receiver, int at, const filter *f)
{
    const tsr_layout *layout = problem->dst.layout;
    const tsr_overlap *overlap = piece->dims[dim];
    int64_t begin = 0, span = tsr_cut_keys(layout, dim);
    for (int m = 0; m < layout->mesh_ndim; m++) {
        if (!tsr_cuts_dim(layout, m, dim))
            continue;
        const int64_t fixed = f->fixed[m], each = span / problem->dst.shape[m];
        if ((m < at && fixed >= 0 && fixed != receiver[m]) || (m == at && fixed >= receiver[m]))
            return 0;
        if (m < at || fixed >= 0) {
            begin += each * (m < at ? receiver[m] : fixed);
            span = each;
            continue;
        }
        span = m == at ? each * receiver[m] : span;
        if (f->owners && any_fixed(problem, dim, m + 1))
            return count_marked(overlap, find_group(overlap, begin), find_group(overlap, begin + span));
        break;
    }
    return (int64_t)(find_group(overlap, begin + span) - find_group(overlap, begin));
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
    filter f = {.owners = false};
    for (int m = 0; m < TSR_MAX_DIMS; m++)
        f.fixed[m] = -1;
    const int64_t all = count_before(problem, piece, receiver, &f);
    if (!problem->same_mesh)
        return all;
    f.owners = true;
    for (int m = 0; m < problem->dst.ndim; m++)
        if (is_fixed(problem, m))
            f.fixed[m] = piece->coordinate[problem->dst.twin[m]];
    return all - count_before(problem, piece, receiver, &f);
}
