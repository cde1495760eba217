#include "ops/rules/refuse.h"

#include "ops/rules/alike.h"
#include "ops/rules/cheapest.h"
#include "ops/rules/place.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes for texts in an error; longer ones are cut. */
#define TEXT 256
/* The largest mesh on which the cheapest layouts are searched, and its most dims. */
#define MOST_RANKS 16
#define MOST_DIMS  2

typedef struct refusal {
    const tsr_op_form *form;
    const tsr_op_names *names;
    const tsr_layout *const *operands;
    const tsr_op_placing *placing;
    const tsr_op_misfit *misfit;
    const tsr_mesh *mesh;
    int mesh_ndim;
    tsr_placement tried[TSR_OP_OPERANDS][TSR_MAX_DIMS]; /* placements that may fit */
    tsr_cut_lists lists;
    tsr_layout *holders[TSR_OP_OPERANDS]; /* NULL, or layouts that have the lists of `tried` */
} refusal;

static const tsr_placement *own_placements(const refusal *r, int operand)
{
    return tsr_layout_placements(r->operands[operand]);
}

static void restore_own(refusal *r)
{
    for (int i = 0; i < r->form->rule->operand_count; i++) {
        if (r->operands[i])
            memcpy(r->tried[i], own_placements(r, i), (size_t)r->mesh_ndim * sizeof(tsr_placement));
    }
}

/* Makes the layout of an operand's tried placements; false: they are none. */
static bool is_layout(const refusal *r, int operand)
{
    tsr_layout *layout;
    if (tsr_layout_with(r->operands[operand], r->tried[operand], &layout) != TSR_OK)
        return false;
    tsr_layout_destroy(layout);
    return true;
}

/* Tries the placements that an added operand must have beside those of the others. */
static bool try_added(refusal *r, int operand, const tsr_placement *wanted)
{
    tsr_layout *layout;
    if (tsr_layout_with(r->operands[operand], wanted, &layout) != TSR_OK)
        return false;
    tsr_layout_destroy(r->holders[operand]);
    r->holders[operand] = layout;
    memcpy(r->tried[operand], tsr_layout_placements(layout), (size_t)r->mesh_ndim * sizeof(tsr_placement));
    return true;
}

/* True if the tried placements are layouts, and fit; added operands follow the others. */
static bool do_fit(refusal *r)
{
    tsr_op_misfit_kind kind = TSR_OP_ADDED;
    for (int added = 0; kind == TSR_OP_ADDED && added < TSR_OP_OPERANDS; added++) {
        tsr_op_placements placements = {0};
        tsr_op_fitted fitted;
        for (int i = 0; i < r->form->rule->operand_count; i++) {
            if (r->operands[i] && !is_layout(r, i))
                return false;
            placements[i] = r->operands[i] ? r->tried[i] : NULL;
        }
        bool goes_on = tsr_op_place(r->form, r->mesh, placements, r->placing, &fitted) == TSR_OK;
        kind = fitted.misfit.kind;
        if (goes_on && kind == TSR_OP_ADDED)
            goes_on = try_added(r, fitted.misfit.operand, fitted.misfit.wanted);
        tsr_op_fitted_clear(&fitted);
        if (!goes_on)
            return false;
    }
    return kind == TSR_OP_FITS;
}

/* A cut of one factor of a dim: a chunk of it, or in a compound the unit or interleave that says
 * so. */
static tsr_placement cut_along(const refusal *r, int operand, int dim, int factor)
{
    int factors[TSR_MAX_DIMS];
    tsr_placement p = tsr_shard(dim);
    int64_t major = 1, minor = 1;
    bool behind = false;
    const int count = tsr_op_form_factors(r->form, r->form->operands[operand].factor[dim], factors);
    for (int i = 0; i < count; i++) {
        const int64_t size = r->form->size[factors[i]];
        if (behind)
            minor *= size;
        else if (factors[i] != factor)
            major *= size;
        behind |= factors[i] == factor;
    }
    p.unit = minor > 1 ? minor : 0;
    p.interleave = major > 1 ? major : 0;
    return p;
}

/* What an operand's placement on a mesh dim would be to fit that of `keeper`: cut alike, or else
 * Replicate. */
static tsr_placement fit_beside(const refusal *r, int operand, int keeper, int k)
{
    int factors[TSR_MAX_DIMS];
    const tsr_op_dims *const own = &r->form->operands[operand];
    const tsr_placement *const other = &own_placements(r, keeper)[k];
    if (other->kind != TSR_SHARD)
        return tsr_replicate();
    const int factor = r->form->operands[keeper].factor[other->dim];
    const int dim = factor < 0 ? -1 : tsr_op_dims_find(own, factor);
    if (dim >= 0) {
        tsr_placement p = *other;
        p.dim = dim;
        return p;
    }
    const int count = tsr_op_form_factors(r->form, factor, factors);
    for (int i = 0; i < count; i++) {
        const int part = tsr_op_form_find(r->form, own, factors[i]);
        if (part >= 0)
            return cut_along(r, operand, part, factors[i]);
    }
    return tsr_replicate();
}

/* Tries other placements of one operand beside those of `keeper`: on the mesh dim that does not
 * fit, then on all. */
static bool try_beside(refusal *r, int operand, int keeper)
{
    const int k = r->misfit->mesh_dim;
    restore_own(r);
    r->tried[operand][k] = fit_beside(r, operand, keeper, k);
    if (do_fit(r))
        return true;
    for (int dim = 0; dim < r->mesh_ndim; dim++)
        r->tried[operand][dim] = fit_beside(r, operand, keeper, dim);
    return do_fit(r);
}

/* Tries cuts along each factor of the compound that an operand's mesh dim cuts across. */
static bool try_along(refusal *r, int operand)
{
    int factors[TSR_MAX_DIMS];
    const int k = r->misfit->mesh_dim, dim = own_placements(r, operand)[k].dim;
    const int count = tsr_op_form_factors(r->form, r->form->operands[operand].factor[dim], factors);
    for (int i = 0; i < count; i++) {
        restore_own(r);
        r->tried[operand][k] = cut_along(r, operand, dim, factors[i]);
        if (do_fit(r))
            return true;
    }
    return false;
}

static bool try_replicate(refusal *r, int operand)
{
    restore_own(r);
    r->tried[operand][r->misfit->mesh_dim] = tsr_replicate();
    if (do_fit(r))
        return true;
    for (int dim = 0; dim < r->mesh_ndim; dim++)
        r->tried[operand][dim] = tsr_replicate();
    return do_fit(r);
}

/* Tries all operands Replicate: on the mesh dim that does not fit, and those before it; then on
 * all. */
static void try_all(refusal *r)
{
    restore_own(r);
    for (int dim = r->misfit->mesh_dim; dim < r->mesh_ndim; dim++) {
        for (int i = 0; i < r->form->rule->operand_count; i++)
            r->tried[i][dim] = tsr_replicate();
        if (do_fit(r))
            return;
    }
    for (int i = 0; i < r->form->rule->operand_count; i++) {
        for (int dim = 0; dim < r->mesh_ndim; dim++)
            r->tried[i][dim] = tsr_replicate();
    }
}

/* Takes the cheapest layouts, on a small mesh; false: there are none. */
static bool try_cheapest(refusal *r)
{
    tsr_layout *found[TSR_OP_OPERANDS] = {NULL};
    bool any;
    const tsr_op_question question = {
        .form = r->form, .placing = r->placing, .operands = r->operands, .policy = TSR_POLICY_ALLOW};
    if (tsr_mesh_count(r->mesh) > MOST_RANKS || r->mesh_ndim > MOST_DIMS ||
        tsr_op_find_cheapest(&question, found, &any) != TSR_OK || !any)
        return false;
    for (int i = 0; i < r->form->rule->operand_count; i++) {
        tsr_layout_destroy(r->holders[i]);
        r->holders[i] = found[i];
        if (found[i])
            memcpy(r->tried[i], tsr_layout_placements(found[i]), (size_t)r->mesh_ndim * sizeof(tsr_placement));
    }
    return true;
}

static void find_proposal(refusal *r)
{
    const bool swap = r->misfit->other >= 0 && r->names->kept >> r->misfit->operand & 1;
    const int operand = swap ? r->misfit->other : r->misfit->operand;
    const int other = swap ? r->misfit->operand : r->misfit->other;
    if (r->misfit->kind == TSR_OP_ADDED) {
        restore_own(r);
        memcpy(r->tried[operand], r->misfit->wanted, (size_t)r->mesh_ndim * sizeof(tsr_placement));
        return;
    }
    if (r->misfit->kind == TSR_OP_CUT_ACROSS && try_along(r, operand))
        return;
    const bool beside = r->misfit->kind != TSR_OP_PARTIAL_BESIDE && other >= 0;
    if (beside && (try_beside(r, operand, other) || try_beside(r, other, operand)))
        return;
    if (try_replicate(r, operand) || (other >= 0 && try_replicate(r, other)) || try_cheapest(r))
        return;
    try_all(r);
}

/* Makes changed units and interleaves of an operand the plainest cuts that own the same. */
static void say_plainly(refusal *r, int operand)
{
    const tsr_op_dims *const dims = &r->form->operands[operand];
    for (int dim = 0; dim < dims->ndim; dim++) {
        bool changed = false;
        tsr_placement cuts[TSR_MAX_DIMS];
        for (int k = 0; k < r->mesh_ndim; k++) {
            const tsr_placement *const p = &r->tried[operand][k];
            const bool cuts_dim = p->kind == TSR_SHARD && p->dim == dim;
            changed |= cuts_dim && (p->unit || p->interleave) && !tsr_placement_same(p, &own_placements(r, operand)[k]);
            cuts[k] = cuts_dim ? *p : tsr_replicate();
            cuts[k].dim = 0;
        }
        const int64_t size = tsr_layout_shape(r->operands[operand])[dim];
        if (!changed || tsr_cuts_simplify(r->mesh, size, cuts, &r->lists) != TSR_OK)
            continue;
        for (int k = 0; k < r->mesh_ndim; k++) {
            cuts[k].dim = dim;
            r->tried[operand][k] = cuts[k].kind == TSR_SHARD ? cuts[k] : r->tried[operand][k];
        }
    }
}

static const char *print_mesh_dim(const refusal *r, char text[TEXT])
{
    const char *const name = tsr_mesh_name(r->mesh, r->misfit->mesh_dim);
    if (name)
        snprintf(text, TEXT, "%.31s", name);
    else
        snprintf(text, TEXT, "%d", r->misfit->mesh_dim);
    return text;
}

/* Says in `why` what does not fit. */
static void explain(const refusal *r, char why[2 * TEXT])
{
    char dim_text[TEXT], name[100];
    const tsr_op_misfit *const m = r->misfit;
    const int k = m->mesh_dim;
    const char *const dim = print_mesh_dim(r, dim_text), *const op = r->names->op;
    const char *const x = r->names->operands[m->operand], *const y = m->other < 0 ? "" : r->names->operands[m->other];
    const tsr_placement *const own = &own_placements(r, m->operand)[k];
    const tsr_placement *const others = m->other < 0 ? own : &own_placements(r, m->other)[k];
    const int other_dim = others->dim;
    switch (m->kind) {
    case TSR_OP_CUT_ONE:
        snprintf(why, 2 * TEXT, "dim %d of %s has size 1 and is repeated, so mesh dim %s must not cut it", own->dim, x,
                 dim);
        break;
    case TSR_OP_CUT_WHOLE:
        snprintf(why, 2 * TEXT, "mesh dim %s cuts dim %d of %s, which %s needs whole", dim, own->dim, x, op);
        break;
    case TSR_OP_CUT_UNLIKE: {
        const tsr_op_dims *const ours = &r->form->operands[m->operand], *const theirs = &r->form->operands[m->other];
        const bool own_dims = m->factor >= TSR_OP_FACTORS;
        const int a = own_dims ? tsr_op_dims_find(theirs, m->factor) : tsr_op_form_find(r->form, theirs, m->factor);
        const int b = own_dims ? tsr_op_dims_find(ours, m->factor) : tsr_op_form_find(r->form, ours, m->factor);
        snprintf(why, 2 * TEXT, "mesh dim %s must cut dim %d of %s and dim %d of %s alike", dim, a, y, b, x);
        break;
    }
    case TSR_OP_CUT_ACROSS:
        tsr_op_form_name(r->form, r->form->operands[m->operand].factor[own->dim], name, sizeof name);
        snprintf(why, 2 * TEXT, "mesh dim %s cuts dim %d of %s, which is %s, otherwise than along one of its factors",
                 dim, own->dim, x, name);
        break;
    case TSR_OP_CUT_UNSAYABLE:
        tsr_op_form_name(r->form, r->form->results[m->result].factor[m->dim], name, sizeof name);
        snprintf(why, 2 * TEXT, "no placement says how mesh dim %s would cut dim %d of the result, which is %s", dim,
                 m->dim, name);
        break;
    case TSR_OP_CUT_ELSEWHERE:
        snprintf(why, 2 * TEXT, "mesh dim %s cuts dim %d of %s and dim %d of %s, which are different factors of \"%s\"",
                 dim, other_dim, y, own->dim, x, r->names->rule);
        break;
    case TSR_OP_PARTIAL_CUT:
        snprintf(why, 2 * TEXT, "%s is Partial(%s) on mesh dim %s, which cuts dim %d of %s", x,
                 tsr_reduce_op_name(own->op), dim, other_dim, y);
        break;
    case TSR_OP_PARTIAL_ALONE:
        snprintf(why, 2 * TEXT,
                 "%s is Partial(%s) on mesh dim %s, which %s does not pass on: its terms must be reduced first", x,
                 tsr_reduce_op_name(own->op), dim, op);
        break;
    case TSR_OP_PARTIAL_BESIDE:
        snprintf(why, 2 * TEXT, "%s is Partial(sum) on mesh dim %s and %s is not, so %s would count once for each rank",
                 x, dim, y, y);
        break;
    case TSR_OP_PARTIAL_BOTH:
        snprintf(why, 2 * TEXT,
                 "%s is Partial(%s) on mesh dim %s and %s is Partial(%s), which %s does not pass on together", x,
                 tsr_reduce_op_name(own->op), dim, y, tsr_reduce_op_name(others->op), op);
        break;
    case TSR_OP_UNPLACED:
        snprintf(why, 2 * TEXT,
                 "mesh dim %s cuts dim %d of %s so that no placement says which rank has what of the result", dim,
                 own->dim, x);
        break;
    case TSR_OP_ADDED:
        snprintf(why, 2 * TEXT, "%s is added once, and must be cut as the result is", x);
        break;
    default:
        snprintf(why, 2 * TEXT,
                 "the result would be Partial on mesh dim %s by an op that does not go with that of another mesh dim",
                 dim);
    }
}

tsr_status tsr_op_refuse(const tsr_op_form *form, const tsr_op_names *names, const tsr_layout *const *operands,
                         const tsr_op_placing *placing, const tsr_op_misfit *misfit)
{
    int first = 0;
    while (!operands[first])
        first++;
    refusal r = {.form = form, .names = names, .operands = operands, .placing = placing, .misfit = misfit};
    r.mesh = tsr_layout_mesh(operands[first]);
    r.mesh_ndim = tsr_mesh_ndim(r.mesh);
    r.lists.context = tsr_mesh_context(r.mesh);
    char why[2 * TEXT], how[4 * TEXT] = "";
    size_t length = 0;
    explain(&r, why);
    find_proposal(&r);
    for (int i = 0; i < form->rule->operand_count; i++) {
        char now[TEXT], then[TEXT];
        if (!operands[i])
            continue;
        say_plainly(&r, i);
        tsr_placements_print(own_placements(&r, i), r.mesh_ndim, now, sizeof now);
        tsr_placements_print(r.tried[i], r.mesh_ndim, then, sizeof then);
        if (strcmp(now, then) != 0 && length < sizeof how)
            length += (size_t)snprintf(how + length, sizeof how - length, "%s %s from \"%s\" to \"%s\"",
                                       length ? " and" : "; redistribute", names->operands[i], now, then);
    }
    for (int i = 0; i < TSR_OP_OPERANDS; i++)
        tsr_layout_destroy(r.holders[i]);
    tsr_cut_lists_clear(&r.lists);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s%s", names->caller, why, how);
}
