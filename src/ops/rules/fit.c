#include "ops/rules/fit.h"

#include "ops/rules/alike.h"

#include <tessera/sys/status.h>

#include <string.h>

typedef struct fitting {
    const tsr_op_form *form;
    const tsr_mesh *mesh;
    const tsr_op_placements *operands;
    int mesh_ndim;
    unsigned *exchanged;
    tsr_op_misfit *misfit;
} fitting;

static bool is_multiplied(const fitting *f, int operand)
{
    return f->form->operands[operand].present && !f->form->operands[operand].added;
}

static const tsr_placement *placement_of(const fitting *f, int operand, int mesh_dim)
{
    return &(*f->operands)[operand][mesh_dim];
}

/* The factor that an operand's Shard cuts on a mesh dim. */
static int cut_factor(const fitting *f, int operand, int mesh_dim)
{
    return f->form->operands[operand].factor[placement_of(f, operand, mesh_dim)->dim];
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
    if (f->misfit->kind == TSR_OP_FITS)
        *f->misfit = (tsr_op_misfit){.kind = kind, .operand = operand, .other = other, .mesh_dim = mesh_dim};
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
    tsr_placement reference[TSR_MAX_DIMS], own[TSR_MAX_DIMS];
    for (int i = 0; i < f->form->rule->operand_count; i++) {
        const int dim = is_multiplied(f, i) ? tsr_op_dims_find(&f->form->operands[i], factor) : -1;
        bool alike = true;
        if (dim < 0)
            continue;
        extract_cuts(f, (*f->operands)[i], dim, own);
        if (first >= 0)
            TSR_TRY(tsr_cuts_alike(f->mesh, f->form->size[factor], reference, own, &alike));
        if (!alike)
            set_misfit(f, TSR_OP_CUT_UNLIKE, i, first, find_difference(f, reference, own));
        if (first < 0)
            memcpy(reference, own, sizeof reference);
        if (first < 0 || tsr_cuts_are_plainer(own, cuts, f->mesh_ndim))
            memcpy(cuts, own, sizeof own);
        first = first < 0 ? i : first;
    }
    return f->misfit->kind == TSR_OP_FITS ? tsr_cuts_simplify(f->mesh, f->form->size[factor], cuts) : TSR_OK;
}

/* Checks all operands on a mesh dim on which `cutter` is cut. */
static void check_cut(const fitting *f, int cutter, int k)
{
    const int factor = cut_factor(f, cutter, k);
    if (factor == TSR_OP_ONE)
        set_misfit(f, TSR_OP_CUT_ONE, cutter, -1, k);
    else if (f->form->marks[factor].whole)
        set_misfit(f, TSR_OP_CUT_WHOLE, cutter, -1, k);
    for (int i = 0; i < f->form->rule->operand_count; i++) {
        if (!is_multiplied(f, i) || i == cutter)
            continue;
        const tsr_placement_kind kind = placement_of(f, i, k)->kind;
        const bool has = tsr_op_dims_find(&f->form->operands[i], factor) >= 0;
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

/* The placement of one result on a mesh dim that cuts a factor. */
static tsr_placement place_cut(const fitting *f, int factor, const tsr_placement *cut, int result)
{
    const int dim = tsr_op_dims_find(&f->form->results[result], factor);
    tsr_placement moved = *cut;
    moved.dim = dim;
    if (dim >= 0)
        return moved;
    return f->form->marks[factor].reduces ? tsr_partial(f->form->marks[factor].reduction) : tsr_replicate();
}

static tsr_status fit_mesh_dim(const fitting *f, int k, tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS])
{
    const int cutter = find_kind(f, TSR_SHARD, k), partial = find_kind(f, TSR_PARTIAL, k);
    const bool counts = tsr_mesh_size(f->mesh, k) > 1;
    tsr_placement passed = tsr_replicate(), cuts[TSR_MAX_DIMS];
    if (counts && cutter >= 0)
        check_cut(f, cutter, k);
    else if (counts && partial >= 0)
        passed = tsr_partial(check_partial(f, partial, k));
    if (f->misfit->kind != TSR_OP_FITS)
        return TSR_OK;
    const int factor = counts && cutter >= 0 ? cut_factor(f, cutter, k) : -1;
    if (factor >= 0)
        TSR_TRY(join_cuts(f, factor, cuts));
    if (factor >= 0 && f->form->marks[factor].exchange)
        *f->exchanged |= 1u << k;
    for (int i = 0; i < f->form->rule->result_count && f->misfit->kind == TSR_OP_FITS; i++)
        results[i][k] = factor >= 0 ? place_cut(f, factor, &cuts[k], i) : passed;
    return TSR_OK;
}

/* Checks that the Partial ops of results go together. */
static void check_mixture(const fitting *f, tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS])
{
    for (int i = 0; i < f->form->rule->result_count; i++) {
        int first = -1;
        for (int k = 0; k < f->mesh_ndim; k++) {
            const tsr_placement *const p = &results[i][k];
            if (p->kind != TSR_PARTIAL)
                continue;
            first = first < 0 ? k : first;
            const tsr_reduce_op a = results[i][first].op, b = p->op;
            if (a != b && (a > TSR_AVG || b > TSR_AVG))
                set_misfit(f, TSR_OP_PARTIAL_MIXED, 0, -1, k);
        }
    }
}

/* Checks that an added operand is cut as the first result is, and Replicate elsewhere. */
static tsr_status check_added(const fitting *f, int operand, const tsr_placement *result)
{
    const tsr_op_dims *const own = &f->form->operands[operand], *const dims = &f->form->results[0];
    tsr_placement wanted[TSR_MAX_DIMS], ours[TSR_MAX_DIMS], theirs[TSR_MAX_DIMS];
    bool fits = true;
    for (int k = 0; k < f->mesh_ndim; k++) {
        const int dim = result[k].kind == TSR_SHARD ? tsr_op_dims_find(own, dims->factor[result[k].dim]) : -1;
        wanted[k] = dim < 0 ? tsr_replicate() : result[k];
        wanted[k].dim = dim < 0 ? 0 : dim;
        fits = fits && (tsr_mesh_size(f->mesh, k) == 1 || placement_of(f, operand, k)->kind == wanted[k].kind);
    }
    for (int dim = 0; dim < own->ndim && fits; dim++) {
        extract_cuts(f, (*f->operands)[operand], dim, ours);
        extract_cuts(f, wanted, dim, theirs);
        TSR_TRY(
            tsr_cuts_alike(f->mesh, own->factor[dim] < 0 ? 1 : f->form->size[own->factor[dim]], ours, theirs, &fits));
    }
    if (!fits) {
        set_misfit(f, TSR_OP_ADDED, operand, -1, 0);
        memcpy(f->misfit->wanted, wanted, (size_t)f->mesh_ndim * sizeof *wanted);
    }
    return TSR_OK;
}

tsr_status tsr_op_fit(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                      tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS], unsigned *exchanged, tsr_op_misfit *misfit)
{
    const fitting f = {form, mesh, (const tsr_op_placements *)operands, tsr_mesh_ndim(mesh), exchanged, misfit};
    *exchanged = 0;
    *misfit = (tsr_op_misfit){.kind = TSR_OP_FITS};
    for (int k = 0; k < f.mesh_ndim && misfit->kind == TSR_OP_FITS; k++)
        TSR_TRY(fit_mesh_dim(&f, k, results));
    if (misfit->kind == TSR_OP_FITS)
        check_mixture(&f, results);
    for (int i = 0; i < form->rule->operand_count && misfit->kind == TSR_OP_FITS; i++) {
        if (form->operands[i].present && form->operands[i].added)
            TSR_TRY(check_added(&f, i, results[0]));
    }
    return TSR_OK;
}
