#include "ops/rules/expand.h"

#include "ops/rules/alike.h"

#include <tessera/sys/status.h>

#include <string.h>

typedef struct expansion {
    const tsr_op_form *form;
    const tsr_mesh *mesh;
    const tsr_op_placements *operands;
    int mesh_ndim;
    tsr_cut_lists *lists;
    tsr_op_expanded *out;
    tsr_op_misfit *misfit;
} expansion;

static bool is_compound(int factor)
{
    return factor >= TSR_OP_FACTORS;
}

static bool have_same_fate(const tsr_op_marks *a, const tsr_op_marks *b)
{
    return a->reduces == b->reduces && (!a->reduces || a->reduction == b->reduction) && a->exchange == b->exchange &&
           a->whole == b->whole && a->permute == b->permute;
}

tsr_op_marks tsr_op_lost_marks(const tsr_op_form *form, const tsr_op_dims *dims, int factor, bool *same)
{
    int factors[TSR_MAX_DIMS], seen = 0;
    tsr_op_marks marks = {0};
    const int count = tsr_op_form_factors(form, factor, factors);
    *same = true;
    for (int i = 0; i < count; i++) {
        const tsr_op_marks *const own = &form->marks[factors[i]];
        if (tsr_op_form_find(form, dims, factors[i]) >= 0)
            continue;
        *same = *same && (seen == 0 || have_same_fate(&marks, own));
        marks = *own;
        seen++;
    }
    *same = *same && seen > 0;
    return marks;
}

tsr_compound_dim tsr_op_compound_dim(const tsr_op_form *form, const tsr_mesh *mesh, int compound)
{
    int factors[TSR_MAX_DIMS];
    tsr_compound_dim dim = {.mesh = mesh, .count = tsr_op_form_factors(form, compound, factors)};
    for (int i = 0; i < dim.count; i++)
        dim.sizes[i] = form->size[factors[i]];
    return dim;
}

/* True if no tensor has a part of a compound, whose factors have the same marks. */
static bool is_atomic(const tsr_op_form *form, int compound)
{
    bool same;
    const tsr_op_dims nothing = {0};
    const tsr_op_marks marks = tsr_op_lost_marks(form, &nothing, compound, &same);
    for (int i = 0; i < form->rule->operand_count; i++) {
        if (form->operands[i].present && tsr_op_form_has_part(form, &form->operands[i], compound))
            return false;
    }
    for (int i = 0; i < form->rule->result_count; i++) {
        if (tsr_op_form_has_part(form, &form->results[i], compound))
            return false;
    }
    return same && !marks.whole;
}

static bool cuts_part(const expansion *e, int operand, int compound, int k)
{
    int factors[TSR_MAX_DIMS];
    const tsr_placement *const p = &(*e->operands)[operand][k];
    const tsr_op_dims *const dims = &e->form->operands[operand];
    const int count = tsr_op_form_factors(e->form, compound, factors);
    for (int i = 0; i < count && p->kind == TSR_SHARD; i++) {
        if (tsr_op_form_find(e->form, dims, factors[i]) == p->dim)
            return true;
    }
    return false;
}

/* True if mesh dim k may cut a compound anywhere. */
static bool passes_anywhere(const expansion *e, int compound, int k)
{
    int factors[TSR_MAX_DIMS];
    const int count = tsr_op_form_factors(e->form, compound, factors);
    bool passes = e->form->rule->compounds[compound - TSR_OP_FACTORS].marks.positional;
    for (int i = 0; i < count; i++)
        passes = passes && !e->form->marks[factors[i]].whole;
    for (int i = 0; i < e->form->rule->operand_count && passes; i++) {
        const tsr_op_dims *const dims = &e->form->operands[i];
        passes = !dims->present || !tsr_op_form_has_part(e->form, dims, compound) || !cuts_part(e, i, compound, k);
    }
    for (int i = 0; i < e->form->rule->result_count && passes; i++) {
        bool same;
        const tsr_op_dims *const dims = &e->form->results[i];
        if (tsr_op_dims_find(dims, compound) >= 0)
            continue;
        const tsr_op_marks lost = tsr_op_lost_marks(e->form, dims, compound, &same);
        passes = same && (lost.reduces || lost.exchange);
    }
    return passes;
}

/* The mesh dims, by bits, that cut the compound itself: the last in the order of cuts. */
static unsigned find_anywhere(const expansion *e, int compound, const tsr_placement *cuts)
{
    int order[TSR_MAX_DIMS];
    unsigned dims = 0;
    const int count = tsr_cuts_order(e->mesh, cuts, order);
    for (int i = count - 1; i >= 0 && (is_atomic(e->form, compound) || passes_anywhere(e, compound, order[i])); i--)
        dims |= 1u << order[i];
    return dims;
}

/* The place of the factor that mesh dim k may cut best, as far as the other operands go: one that
 * they cut, or else the first that none of them has; -1: there is none. */
static int find_hint(const expansion *e, int operand, const int *factors, int count, int k)
{
    unsigned held = 0;
    for (int i = 0; i < e->form->rule->operand_count; i++) {
        const tsr_op_dims *const dims = &e->form->operands[i];
        for (int place = 0; dims->present && i != operand && place < count; place++) {
            const tsr_placement *const p = &(*e->operands)[i][k];
            const int dim = tsr_op_dims_find(dims, factors[place]);
            if (dim >= 0 && p->kind == TSR_SHARD && p->dim == dim)
                return place;
            held |= dim >= 0 ? 1u << place : 0;
        }
    }
    for (int place = 0; place < count; place++) {
        if (!(held >> place & 1))
            return place;
    }
    return -1;
}

/* Divides the cuts of a compound dim, but those of the mesh dims in `anywhere`. */
static tsr_status divide(const expansion *e, int operand, int compound, unsigned anywhere, tsr_placement *cuts)
{
    bool divides;
    int mesh_dim, factors[TSR_MAX_DIMS], hint[TSR_MAX_DIMS], place[TSR_MAX_DIMS];
    const tsr_compound_dim dim = tsr_op_compound_dim(e->form, e->mesh, compound);
    tsr_op_expanded *const out = &e->out[operand];
    tsr_op_form_factors(e->form, compound, factors);
    for (int k = 0; k < e->mesh_ndim; k++) {
        hint[k] = find_hint(e, operand, factors, dim.count, k);
        if (!(anywhere >> k & 1))
            continue;
        out->cut[k] = cuts[k];
        out->factor[k] = compound;
        cuts[k] = tsr_replicate();
    }
    TSR_TRY(tsr_compound_divide(&dim, hint, e->lists, cuts, place, &divides, &mesh_dim));
    for (int k = 0; k < e->mesh_ndim && divides; k++) {
        if (place[k] < 0)
            continue;
        out->cut[k] = cuts[k];
        out->factor[k] = factors[place[k]];
    }
    if (!divides)
        *e->misfit = (tsr_op_misfit){.kind = TSR_OP_CUT_ACROSS, .operand = operand, .other = -1, .mesh_dim = mesh_dim};
    return TSR_OK;
}

static tsr_status expand_operand(const expansion *e, int operand)
{
    const tsr_placement *const own = (*e->operands)[operand];
    const tsr_op_dims *const dims = &e->form->operands[operand];
    tsr_op_expanded *const out = &e->out[operand];
    unsigned compounds = 0;
    for (int k = 0; k < e->mesh_ndim; k++) {
        const bool is_cut = own[k].kind == TSR_SHARD;
        out->cut[k] = tsr_mesh_size(e->mesh, k) > 1 ? own[k] : tsr_replicate();
        out->cut[k].dim = 0;
        out->factor[k] = is_cut ? dims->factor[own[k].dim] : TSR_OP_ONE;
        if (is_cut && is_compound(out->factor[k]) && out->cut[k].kind == TSR_SHARD)
            compounds |= 1u << own[k].dim;
    }
    for (int dim = 0; dim < dims->ndim && e->misfit->kind == TSR_OP_FITS; dim++) {
        tsr_placement cuts[TSR_MAX_DIMS];
        if (!(compounds >> dim & 1))
            continue;
        for (int k = 0; k < e->mesh_ndim; k++)
            cuts[k] = own[k].kind == TSR_SHARD && own[k].dim == dim ? out->cut[k] : tsr_replicate();
        TSR_TRY(divide(e, operand, dims->factor[dim], find_anywhere(e, dims->factor[dim], cuts), cuts));
    }
    return TSR_OK;
}

tsr_status tsr_op_expand_form(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                              tsr_cut_lists *lists, tsr_op_expanded out[TSR_OP_OPERANDS], tsr_op_misfit *misfit)
{
    const expansion e = {form, mesh, (const tsr_op_placements *)operands, tsr_mesh_ndim(mesh), lists, out, misfit};
    for (int i = 0; i < form->rule->operand_count && misfit->kind == TSR_OP_FITS; i++) {
        if (form->operands[i].present && !form->operands[i].added)
            TSR_TRY(expand_operand(&e, i));
    }
    return TSR_OK;
}
