#include "ops/rules/fit.h"

#include "ops/rules/alike.h"
#include "ops/rules/expand.h"

#include <tessera/sys/status.h>

#include <string.h>

typedef struct fitting {
    const tsr_op_form *form;
    const tsr_mesh *mesh;
    const tsr_op_placements *operands;
    int mesh_ndim;
    tsr_op_fitted *out;
    tsr_op_misfit *misfit;
    tsr_op_expanded own[TSR_OP_OPERANDS];
    /* by mesh dim: the factor that is cut, or a compound; -1: none; its cut, as of dim 0; and else
     * what results get */
    int factor[TSR_MAX_DIMS];
    tsr_placement cut[TSR_MAX_DIMS], passed[TSR_MAX_DIMS];
} fitting;

static bool is_multiplied(const fitting *f, int operand)
{
    return f->form->operands[operand].present && !f->form->operands[operand].added;
}

static const tsr_placement *placement_of(const fitting *f, int operand, int mesh_dim)
{
    return &f->own[operand].cut[mesh_dim];
}

/* The factor that an operand's Shard cuts on a mesh dim. */
static int cut_factor(const fitting *f, int operand, int mesh_dim)
{
    return f->own[operand].factor[mesh_dim];
}

/* The dim that is a factor or compound, or has the factor in a compound; -1: there is none. */
static int find_dim(const fitting *f, const tsr_op_dims *dims, int factor)
{
    const int own = tsr_op_dims_find(dims, factor);
    return own >= 0 || factor >= TSR_OP_FACTORS ? own : tsr_op_form_find(f->form, dims, factor);
}

/* The first operand of a kind on a mesh dim; -1: there is none. */
static int find_kind(const fitting *f, tsr_placement_kind kind, int mesh_dim)
{
    for (int i = 0; i < f->form->rule->operand_count; i++) {
        if (is_multiplied(f, i) && placement_of(f, i, mesh_dim)->kind == kind)
            return i;
    }
    return -1;
}

static void set_misfit(const fitting *f, tsr_op_misfit_kind kind, int operand, int other, int mesh_dim)
{
    const int factor = f->factor[mesh_dim];
    if (f->misfit->kind == TSR_OP_FITS)
        *f->misfit = (tsr_op_misfit){kind, operand, other, mesh_dim, .factor = factor};
}

/* An operand's cuts of one factor, or compound, as of dim 0. */
static void extract_factor(const fitting *f, int operand, int factor, tsr_placement cuts[TSR_MAX_DIMS])
{
    for (int k = 0; k < f->mesh_ndim; k++) {
        const bool cuts_it = placement_of(f, operand, k)->kind == TSR_SHARD && cut_factor(f, operand, k) == factor;
        cuts[k] = cuts_it ? *placement_of(f, operand, k) : tsr_replicate();
    }
}

/* The placements of a tensor that cut one of its dims, as cuts of dim 0. */
static void extract_cuts(const fitting *f, const tsr_placement *placements, int dim, tsr_placement cuts[TSR_MAX_DIMS])
{
    for (int k = 0; k < f->mesh_ndim; k++) {
        const bool cuts_dim = placements[k].kind == TSR_SHARD && placements[k].dim == dim;
        cuts[k] = cuts_dim && tsr_mesh_size(f->mesh, k) > 1 ? placements[k] : tsr_replicate();
        cuts[k].dim = 0;
    }
}

/* A mesh dim that cuts one of two dims only, or cuts them by different placements. */
static int find_difference(const fitting *f, const tsr_placement *a, const tsr_placement *b)
{
    int cut = 0;
    for (int k = f->mesh_ndim - 1; k >= 0; k--) {
        if (a[k].kind != b[k].kind || !tsr_placement_same(&a[k], &b[k]))
            return k;
        cut = a[k].kind == TSR_SHARD ? k : cut;
    }
    return cut;
}

/* Finds how a factor is cut, by the operand that does so in the plainest form; all operands that
 * have the factor must cut it alike. */
static tsr_status join_cuts(const fitting *f, int factor, tsr_placement cuts[TSR_MAX_DIMS])
{
    int first = -1;
    const int64_t size = tsr_op_form_size(f->form, factor);
    tsr_placement reference[TSR_MAX_DIMS], own[TSR_MAX_DIMS];
    for (int i = 0; i < f->form->rule->operand_count; i++) {
        const int dim = is_multiplied(f, i) ? find_dim(f, &f->form->operands[i], factor) : -1;
        bool alike = true;
        if (dim < 0)
            continue;
        if (f->form->operands[i].factor[dim] == factor)
            extract_cuts(f, (*f->operands)[i], dim, own);
        else
            extract_factor(f, i, factor, own);
        if (first >= 0)
            TSR_TRY(tsr_cuts_alike(f->mesh, size, reference, own, &alike));
        if (!alike)
            set_misfit(f, TSR_OP_CUT_UNLIKE, i, first, find_difference(f, reference, own));
        if (first < 0)
            memcpy(reference, own, sizeof reference);
        if (first < 0 || tsr_cuts_are_plainer(own, cuts, f->mesh_ndim))
            memcpy(cuts, own, sizeof own);
        first = first < 0 ? i : first;
    }
    return f->misfit->kind == TSR_OP_FITS ? tsr_cuts_simplify(f->mesh, size, cuts, &f->out->lists) : TSR_OK;
}

/* Checks all operands on a mesh dim on which `cutter` is cut. */
static void check_cut(const fitting *f, int cutter, int k)
{
    const int factor = cut_factor(f, cutter, k);
    if (factor == TSR_OP_ONE)
        set_misfit(f, TSR_OP_CUT_ONE, cutter, -1, k);
    else if (factor < TSR_OP_FACTORS && f->form->marks[factor].whole)
        set_misfit(f, TSR_OP_CUT_WHOLE, cutter, -1, k);
    for (int i = 0; i < f->form->rule->operand_count; i++) {
        if (!is_multiplied(f, i) || i == cutter)
            continue;
        const tsr_placement_kind kind = placement_of(f, i, k)->kind;
        const bool has = find_dim(f, &f->form->operands[i], factor) >= 0;
        if (kind == TSR_PARTIAL)
            set_misfit(f, TSR_OP_PARTIAL_CUT, i, cutter, k);
        else if (kind == TSR_SHARD && cut_factor(f, i, k) == TSR_OP_ONE)
            set_misfit(f, TSR_OP_CUT_ONE, i, -1, k);
        else if (kind == TSR_SHARD && cut_factor(f, i, k) != factor)
            set_misfit(f, TSR_OP_CUT_ELSEWHERE, i, cutter, k);
        else if (has && kind == TSR_REPLICATE)
            set_misfit(f, TSR_OP_CUT_UNLIKE, i, cutter, k);
    }
}

/* The linear set that has an operand, less operands that are left out; 0: there is none. */
static unsigned linear_set(const fitting *f, int operand)
{
    unsigned present = 0;
    for (int i = 0; i < f->form->rule->operand_count; i++)
        present |= is_multiplied(f, i) ? 1u << i : 0;
    for (int i = 0; i < f->form->rule->linear_count; i++) {
        if (f->form->rule->linear[i] >> operand & 1)
            return f->form->rule->linear[i] & present;
    }
    return 0;
}

/* Whether the Partial(sum or avg) of `first` and of `others`, by bits, passes on a mesh dim. */
static void check_linear(const fitting *f, int first, unsigned partial, int k)
{
    const unsigned set = linear_set(f, first);
    if (!set)
        set_misfit(f, TSR_OP_PARTIAL_ALONE, first, -1, k);
    for (int i = 0; i < f->form->rule->operand_count; i++) {
        const bool inside = set >> i & 1, is_partial = partial >> i & 1;
        if (is_partial && (!inside || placement_of(f, i, k)->op != placement_of(f, first, k)->op))
            set_misfit(f, TSR_OP_PARTIAL_BOTH, i, first, k);
        if (!is_partial && inside && placement_of(f, first, k)->op == TSR_SUM)
            set_misfit(f, TSR_OP_PARTIAL_BESIDE, first, i, k);
    }
}

/* True if no contraction of the rule stands between the Partial op of an operand and results. */
static bool passes_contractions(const fitting *f, tsr_reduce_op op)
{
    for (int factor = 0; factor < f->form->rule->factor_count; factor++) {
        const tsr_op_marks *const marks = &f->form->rule->marks[factor];
        if (marks->reduces && marks->reduction != op)
            return false;
    }
    return true;
}

static tsr_reduce_op swapped(tsr_reduce_op op)
{
    return op == TSR_MAX ? TSR_MIN : TSR_MAX;
}

/* The Partial op that results get where operands are Partial and none is cut. */
static tsr_reduce_op check_partial(const fitting *f, int first, int k)
{
    const tsr_reduce_op op = placement_of(f, first, k)->op;
    unsigned partial = 0;
    for (int i = 0; i < f->form->rule->operand_count; i++)
        partial |= is_multiplied(f, i) && placement_of(f, i, k)->kind == TSR_PARTIAL ? 1u << i : 0;
    if (op == TSR_SUM || op == TSR_AVG) {
        check_linear(f, first, partial, k);
        return op;
    }
    const bool rises = f->form->rule->monotone >> first & 1, falls = f->form->rule->antitone >> first & 1;
    if (op == TSR_PROD || (!rises && !falls) || !passes_contractions(f, op))
        set_misfit(f, TSR_OP_PARTIAL_ALONE, first, -1, k);
    for (int i = first + 1; i < f->form->rule->operand_count; i++) {
        if (partial >> i & 1)
            set_misfit(f, TSR_OP_PARTIAL_BOTH, i, first, k);
    }
    return falls ? swapped(op) : op;
}

static bool is_exchanged(const fitting *f, int factor)
{
    int factors[TSR_MAX_DIMS];
    const int count = tsr_op_form_factors(f->form, factor, factors);
    bool exchanged = false;
    for (int i = 0; i < count; i++)
        exchanged |= f->form->marks[factors[i]].exchange;
    return exchanged;
}

/* Finds what a mesh dim cuts, and how, or what passes. */
static tsr_status fit_mesh_dim(fitting *f, int k)
{
    const int cutter = find_kind(f, TSR_SHARD, k), partial = find_kind(f, TSR_PARTIAL, k);
    tsr_placement cuts[TSR_MAX_DIMS];
    f->passed[k] = tsr_replicate();
    f->factor[k] = cutter >= 0 ? cut_factor(f, cutter, k) : -1;
    if (cutter >= 0)
        check_cut(f, cutter, k);
    else if (partial >= 0)
        f->passed[k] = tsr_partial(check_partial(f, partial, k));
    if (f->misfit->kind != TSR_OP_FITS || f->factor[k] < 0)
        return TSR_OK;
    TSR_TRY(join_cuts(f, f->factor[k], cuts));
    f->cut[k] = cuts[k];
    if (is_exchanged(f, f->factor[k]))
        f->out->exchanged |= 1u << k;
    return TSR_OK;
}

/* Says the cuts of a compound dim's factors as cuts of the dim, in `out`. Where a mesh dim cuts the
 * compound itself, an operand has said it. */
static tsr_status place_compound(const fitting *f, int compound, int dim, tsr_placement *out, bool *sayable)
{
    int factors[TSR_MAX_DIMS], place[TSR_MAX_DIMS];
    bool itself = false, any = false;
    tsr_placement cuts[TSR_MAX_DIMS];
    const int count = tsr_op_form_factors(f->form, compound, factors);
    for (int k = 0; k < f->mesh_ndim; k++) {
        place[k] = count - 1;
        while (place[k] >= 0 && factors[place[k]] != f->factor[k])
            place[k]--;
        cuts[k] = place[k] < 0 ? tsr_replicate() : f->cut[k];
        itself |= f->factor[k] == compound;
        any |= place[k] >= 0;
    }
    const tsr_compound_dim whole = tsr_op_compound_dim(f->form, f->mesh, compound);
    *sayable = true;
    if (itself)
        TSR_TRY(join_cuts(f, compound, cuts));
    else if (any)
        TSR_TRY(tsr_compound_combine(&whole, place, &f->out->lists, cuts, sayable));
    for (int k = 0; k < f->mesh_ndim && *sayable; k++) {
        if (cuts[k].kind != TSR_SHARD)
            continue;
        out[k] = cuts[k];
        out[k].dim = dim;
    }
    return TSR_OK;
}

/* The placements of a tensor that is cut as factors are; `*unsayable` gets a dim that no placements
 * can say, or -1. */
static tsr_status place_tensor(const fitting *f, const tsr_op_dims *dims, tsr_placement *out, int *unsayable)
{
    *unsayable = -1;
    for (int k = 0; k < f->mesh_ndim; k++) {
        bool same;
        const int factor = f->factor[k], dim = factor < 0 ? -1 : find_dim(f, dims, factor);
        out[k] = f->passed[k];
        if (factor >= 0 && dim < 0) {
            const tsr_op_marks lost = tsr_op_lost_marks(f->form, dims, factor, &same);
            out[k] = lost.reduces ? tsr_partial(lost.reduction) : tsr_replicate();
        } else if (dim >= 0 && dims->factor[dim] < TSR_OP_FACTORS) {
            out[k] = f->cut[k];
            out[k].dim = dim;
        }
    }
    for (int dim = 0; dim < dims->ndim && *unsayable < 0; dim++) {
        bool sayable = true;
        if (dims->factor[dim] >= TSR_OP_FACTORS)
            TSR_TRY(place_compound(f, dims->factor[dim], dim, out, &sayable));
        *unsayable = sayable ? -1 : dim;
    }
    return TSR_OK;
}

static tsr_status place_result(const fitting *f, int result)
{
    int dim, k = 0;
    const tsr_op_dims *const dims = &f->form->results[result];
    TSR_TRY(place_tensor(f, dims, f->out->results[result], &dim));
    if (dim < 0)
        return TSR_OK;
    for (int other = 0; other < f->mesh_ndim; other++)
        k = f->factor[other] >= 0 && find_dim(f, dims, f->factor[other]) == dim ? other : k;
    set_misfit(f, TSR_OP_CUT_UNSAYABLE, find_kind(f, TSR_SHARD, k), -1, k);
    f->misfit->result = result;
    f->misfit->dim = dim;
    return TSR_OK;
}

/* Checks that the Partial ops of results go together. */
static void check_mixture(const fitting *f)
{
    for (int i = 0; i < f->form->rule->result_count; i++) {
        int first = -1;
        for (int k = 0; k < f->mesh_ndim; k++) {
            const tsr_placement *const p = &f->out->results[i][k];
            if (p->kind != TSR_PARTIAL)
                continue;
            first = first < 0 ? k : first;
            const tsr_reduce_op a = f->out->results[i][first].op, b = p->op;
            if (a != b && (a > TSR_AVG || b > TSR_AVG))
                set_misfit(f, TSR_OP_PARTIAL_MIXED, 0, -1, k);
        }
    }
}

/* Checks that an added operand is cut as the first result is, and Replicate elsewhere. */
static tsr_status check_added(const fitting *f, int operand)
{
    const tsr_op_dims *const own = &f->form->operands[operand];
    tsr_placement wanted[TSR_MAX_DIMS], ours[TSR_MAX_DIMS], theirs[TSR_MAX_DIMS];
    fitting result = *f;
    int unsayable;
    bool fits = true;
    for (int k = 0; k < f->mesh_ndim; k++) {
        const bool has = f->factor[k] >= 0 && find_dim(f, &f->form->results[0], f->factor[k]) >= 0;
        result.factor[k] = has && find_dim(f, own, f->factor[k]) >= 0 ? f->factor[k] : -1;
        result.passed[k] = tsr_replicate();
    }
    TSR_TRY(place_tensor(&result, own, wanted, &unsayable));
    for (int k = 0; k < f->mesh_ndim; k++)
        fits = fits && (tsr_mesh_size(f->mesh, k) == 1 || (*f->operands)[operand][k].kind == wanted[k].kind);
    for (int dim = 0; dim < own->ndim && fits; dim++) {
        const int64_t size = tsr_op_form_size(f->form, own->factor[dim]);
        extract_cuts(f, (*f->operands)[operand], dim, ours);
        extract_cuts(f, wanted, dim, theirs);
        TSR_TRY(tsr_cuts_alike(f->mesh, size, ours, theirs, &fits));
    }
    if (!fits) {
        set_misfit(f, TSR_OP_ADDED, operand, -1, 0);
        memcpy(f->misfit->wanted, wanted, (size_t)f->mesh_ndim * sizeof *wanted);
    }
    return TSR_OK;
}

void tsr_op_fitted_clear(tsr_op_fitted *fitted)
{
    tsr_cut_lists_clear(&fitted->lists);
}

tsr_status tsr_op_fit(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                      tsr_op_fitted *out)
{
    *out = (tsr_op_fitted){.lists = {tsr_mesh_context(mesh), NULL}};
    fitting f = {.form = form,
                 .mesh = mesh,
                 .operands = (const tsr_op_placements *)operands,
                 .mesh_ndim = tsr_mesh_ndim(mesh),
                 .out = out,
                 .misfit = &out->misfit};
    const tsr_op_misfit *const misfit = &out->misfit;
    TSR_TRY(tsr_op_expand_form(form, mesh, operands, &out->lists, f.own, &out->misfit));
    for (int k = 0; k < f.mesh_ndim && misfit->kind == TSR_OP_FITS; k++)
        TSR_TRY(fit_mesh_dim(&f, k));
    for (int i = 0; i < form->rule->result_count && misfit->kind == TSR_OP_FITS; i++)
        TSR_TRY(place_result(&f, i));
    if (misfit->kind == TSR_OP_FITS)
        check_mixture(&f);
    for (int i = 0; i < form->rule->operand_count && misfit->kind == TSR_OP_FITS; i++) {
        if (form->operands[i].present && form->operands[i].added)
            TSR_TRY(check_added(&f, i));
    }
    return TSR_OK;
}
