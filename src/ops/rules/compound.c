#include "ops/rules/compound.h"

#include <tessera/sys/status.h>

#include <string.h>

/* What one coordinate has of each factor, while all have as much: cuts that divide evenly. */
typedef struct even {
    const tsr_compound_dim *dim;
    int64_t left[TSR_MAX_DIMS];
} even;

static even begin_even(const tsr_compound_dim *dim)
{
    even e = {.dim = dim};
    memcpy(e.left, dim->sizes, sizeof e.left);
    return e;
}

/* The product of what is left of the factors in [begin, end). */
static int64_t product(const even *e, int begin, int end)
{
    int64_t all = 1;
    for (int i = begin; i < end; i++)
        all *= e->left[i];
    return all;
}

/* The factor that a placement cuts evenly, leaving each coordinate as much; -1: there is none, or
 * this is not so. */
static int find_even(const even *e, const tsr_placement *p, int64_t parts)
{
    const int64_t blocks = p->interleave > 1 ? p->interleave : 1, unit = p->unit > 1 ? p->unit : 1;
    int factor = 0;
    if (p->sizes || p->blocks)
        return -1;
    while (factor < e->dim->count && (product(e, 0, factor) < blocks || e->left[factor] == 1))
        factor++;
    if (factor == e->dim->count || product(e, 0, factor) != blocks || e->left[factor] % parts != 0)
        return -1;
    const int64_t own = product(e, factor, e->dim->count) / parts;
    return own > 0 && own % unit == 0 ? factor : -1;
}

/* Divides cuts of which each divides evenly; false: they are not so. */
static bool divide_evenly(const tsr_compound_dim *dim, tsr_placement *cuts, int *factor)
{
    even e = begin_even(dim);
    int order[TSR_MAX_DIMS];
    const int count = tsr_cuts_order(dim->mesh, cuts, order);
    for (int i = 0; i < count; i++) {
        const int k = order[i];
        factor[k] = find_even(&e, &cuts[k], tsr_mesh_size(dim->mesh, k));
        if (factor[k] < 0)
            return false;
        e.left[factor[k]] /= tsr_mesh_size(dim->mesh, k);
    }
    for (int i = 0; i < count; i++) {
        cuts[order[i]] = tsr_shard(0);
        cuts[order[i]].order = i;
    }
    return true;
}

/* The cuts of the factor at `place`, as a tensor's. */
static void extract_factor(const tsr_compound_dim *dim, const int *factor, const tsr_placement *cuts, int place,
                           tsr_placement *out)
{
    for (int k = 0; k < tsr_mesh_ndim(dim->mesh); k++)
        out[k] = factor[k] == place ? cuts[k] : tsr_replicate();
}

/* Gives orders that hold within each factor the default where they can have it. */
static void settle_orders(const tsr_compound_dim *dim, const int *factor, tsr_placement *cuts)
{
    tsr_placement own[TSR_MAX_DIMS];
    for (int place = 0; place < dim->count; place++) {
        extract_factor(dim, factor, cuts, place, own);
        tsr_cuts_settle_order(tsr_mesh_ndim(dim->mesh), own);
        for (int k = 0; k < tsr_mesh_ndim(dim->mesh); k++)
            cuts[k] = factor[k] == place ? own[k] : cuts[k];
    }
}

/* Finds placements for the parts of factors. */
static tsr_status express_factors(const tsr_compound_dim *dim, const tsr_parts *parts, tsr_cut_lists *lists,
                                  tsr_placement *cuts, int *factor, bool *divides)
{
    tsr_placement all[TSR_MAX_DIMS], own[TSR_MAX_DIMS];
    *divides = true;
    for (int k = 0; k < tsr_mesh_ndim(dim->mesh); k++) {
        all[k] = tsr_replicate();
        factor[k] = -1;
    }
    for (int place = 0; place < dim->count && *divides; place++) {
        TSR_TRY(tsr_parts_express(dim->mesh, &parts[place], NULL, lists, own, divides));
        for (int k = 0; k < tsr_mesh_ndim(dim->mesh); k++) {
            if (!(parts[place].dims >> k & 1))
                continue;
            factor[k] = place;
            all[k] = own[k];
        }
    }
    if (*divides)
        memcpy(cuts, all, (size_t)tsr_mesh_ndim(dim->mesh) * sizeof *cuts);
    return TSR_OK;
}

tsr_status tsr_compound_divide(const tsr_compound_dim *dim, const int *hint, tsr_cut_lists *lists, tsr_placement *cuts,
                               int *factor, bool *divides, int *mesh_dim)
{
    tsr_parts parts, own[TSR_MAX_DIMS];
    int64_t size = 1;
    for (int k = 0; k < tsr_mesh_ndim(dim->mesh); k++)
        factor[k] = -1;
    *divides = divide_evenly(dim, cuts, factor);
    if (*divides) {
        settle_orders(dim, factor, cuts);
        return TSR_OK;
    }
    for (int i = 0; i < dim->count; i++)
        size *= dim->sizes[i];
    TSR_TRY(tsr_parts_list(dim->mesh, size, cuts, &parts));
    tsr_status status = tsr_parts_divide(&parts, dim->count, dim->sizes, hint, own, divides, mesh_dim);
    if (status == TSR_OK && *divides) {
        status = express_factors(dim, own, lists, cuts, factor, divides);
        for (int i = 0; i < dim->count; i++)
            tsr_parts_clear(&own[i]);
    }
    tsr_parts_clear(&parts);
    return status;
}

/* Placements of the dim for cuts of factors that divide evenly. */
typedef struct weaving {
    const tsr_compound_dim *dim;
    const int *factor;
    int order[TSR_MAX_DIMS]; /* of the mesh dims that cut a factor, by factor one after the other */
    int count;
    tsr_placement tried[TSR_MAX_DIMS], best[TSR_MAX_DIMS];
    bool found;
} weaving;

/* True if a mesh dim may be the next to cut: those before it in its factor's order have cut. */
static bool is_next(const weaving *w, unsigned done, int place)
{
    for (int i = 0; i < place; i++) {
        if (w->factor[w->order[i]] == w->factor[w->order[place]] && !(done >> w->order[i] & 1))
            return false;
    }
    return true;
}

/* Lets each mesh dim cut next that may, and keeps the plainest placements. */
static void weave(weaving *w, even e, unsigned done, int depth)
{
    const int mesh_ndim = tsr_mesh_ndim(w->dim->mesh);
    if (depth == w->count) {
        if (!w->found || tsr_cuts_compare_forms(w->tried, w->best, mesh_ndim) < 0)
            memcpy(w->best, w->tried, sizeof w->best);
        w->found = true;
    }
    for (int k = 0; k < mesh_ndim; k++) {
        int place = 0;
        while (place < w->count && w->order[place] != k)
            place++;
        if (place == w->count || done >> k & 1 || !is_next(w, done, place))
            continue;
        even after = e;
        const int64_t blocks = product(&e, 0, w->factor[k]);
        after.left[w->factor[k]] /= tsr_mesh_size(w->dim->mesh, k);
        w->tried[k] = tsr_shard(0);
        w->tried[k].interleave = blocks > 1 ? blocks : 0;
        w->tried[k].order = depth;
        weave(w, after, done | 1u << k, depth + 1);
    }
}

/* Combines chunks of which each divides evenly; false: they are not so. */
static bool combine_evenly(const tsr_compound_dim *dim, const int *factor, tsr_placement *cuts)
{
    const int mesh_ndim = tsr_mesh_ndim(dim->mesh);
    weaving w = {.dim = dim, .factor = factor};
    tsr_placement own[TSR_MAX_DIMS];
    for (int place = 0; place < dim->count; place++) {
        int64_t left = dim->sizes[place];
        extract_factor(dim, factor, cuts, place, own);
        const int count = tsr_cuts_order(dim->mesh, own, w.order + w.count);
        for (int i = w.count; i < w.count + count; i++) {
            const int64_t size = tsr_mesh_size(dim->mesh, w.order[i]);
            if (left == 0 || left % size != 0 || !tsr_placement_same(&cuts[w.order[i]], &(tsr_placement){TSR_SHARD}))
                return false;
            left /= size;
        }
        w.count += count;
        if (left == 0)
            return false;
    }
    for (int k = 0; k < mesh_ndim; k++)
        w.tried[k] = tsr_replicate();
    weave(&w, begin_even(dim), 0, 0);
    memcpy(cuts, w.best, (size_t)mesh_ndim * sizeof *cuts);
    tsr_cuts_settle_order(mesh_ndim, cuts);
    return true;
}

tsr_status tsr_compound_combine(const tsr_compound_dim *dim, const int *factor, tsr_cut_lists *lists,
                                tsr_placement *cuts, bool *combines)
{
    tsr_parts own[TSR_MAX_DIMS], all = {0};
    tsr_placement cut[TSR_MAX_DIMS];
    *combines = combine_evenly(dim, factor, cuts);
    if (*combines)
        return TSR_OK;
    memset(own, 0, sizeof own);
    tsr_status status = TSR_OK;
    for (int i = 0; i < dim->count && status == TSR_OK; i++) {
        extract_factor(dim, factor, cuts, i, cut);
        status = tsr_parts_list(dim->mesh, dim->sizes[i], cut, &own[i]);
    }
    if (status == TSR_OK)
        status = tsr_parts_multiply(dim->mesh, dim->count, own, &all);
    if (status == TSR_OK)
        status = tsr_parts_express(dim->mesh, &all, NULL, lists, cuts, combines);
    tsr_parts_clear(&all);
    for (int i = 0; i < dim->count; i++)
        tsr_parts_clear(&own[i]);
    return status;
}
