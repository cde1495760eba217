#include "ops/rules/place.h"

#include "ops/rules/pieces.h"

#include <tessera/sys/status.h>

#include <string.h>

typedef struct placement_search {
    const tsr_op_form *form;
    const tsr_mesh *mesh;
    const tsr_op_placements *operands;
    const tsr_op_placing *placing;
    int factor; /* the one marked "permute" */
    tsr_op_fitted *out;
    tsr_placement cuts[TSR_OP_OPERANDS][TSR_MAX_DIMS]; /* of each operand's dim of the factor, as cuts of dim 0 */
} placement_search;

static int dim_of(const placement_search *s, int operand)
{
    return tsr_op_dims_find(&s->form->operands[operand], s->factor);
}

static bool cuts_factor(const placement_search *s, int operand, int k)
{
    const int dim = dim_of(s, operand);
    const tsr_placement *const own = dim < 0 ? NULL : &(*s->operands)[operand][k];
    return own && own->kind == TSR_SHARD && own->dim == dim && tsr_mesh_size(s->mesh, k) > 1;
}

/* The first operand that cuts the factor on a mesh dim; -1: none does. */
static int find_cutter(const placement_search *s, int k)
{
    for (int i = 0; i < s->form->rule->operand_count; i++) {
        if (cuts_factor(s, i, k))
            return i;
    }
    return -1;
}

static void set_misfit(const placement_search *s, tsr_op_misfit_kind kind, int operand, int other, int k)
{
    if (s->out->misfit.kind == TSR_OP_FITS)
        s->out->misfit =
            (tsr_op_misfit){.kind = kind, .operand = operand, .other = other, .mesh_dim = k, .factor = s->factor};
}

/* Checks that all operands cut the factor where `cutter` does. */
static void check_together(const placement_search *s, int cutter, int k)
{
    for (int i = 0; i < s->form->rule->operand_count; i++) {
        if (dim_of(s, i) < 0 || cuts_factor(s, i, k))
            continue;
        const tsr_placement_kind kind = (*s->operands)[i][k].kind;
        set_misfit(s,
                   kind == TSR_SHARD     ? TSR_OP_CUT_ELSEWHERE
                   : kind == TSR_PARTIAL ? TSR_OP_PARTIAL_CUT
                                         : TSR_OP_CUT_UNLIKE,
                   i, cutter, k);
    }
}

/* Takes the cuts of the factor out of an operand's placements. */
static void lift_cuts(placement_search *s, int operand, tsr_placement *rest)
{
    for (int k = 0; k < tsr_mesh_ndim(s->mesh); k++) {
        const bool cut = cuts_factor(s, operand, k);
        const tsr_placement own = (*s->operands)[operand][k];
        s->cuts[operand][k] = cut ? own : tsr_replicate();
        s->cuts[operand][k].dim = 0;
        rest[k] = cut ? tsr_replicate() : own;
    }
}

/* Finds the result's cuts. */
static tsr_status find_cuts(const placement_search *s, tsr_placement *cuts, bool *found)
{
    const tsr_op_placing *const placing = s->placing;
    tsr_piece pieces[TSR_OP_OPERANDS];
    for (int i = 0; i < placing->count; i++) {
        const tsr_op_part *const part = &placing->parts[i];
        pieces[i] = (tsr_piece){s->cuts[part->operand], part->size, part->start, part->end, part->step, part->offset};
    }
    const tsr_pieces all = {s->mesh, placing->count, pieces, placing->size};
    if (placing->like < 0)
        return tsr_pieces_cut(&all, &s->out->lists, cuts, found);
    memcpy(cuts, s->cuts[placing->like], sizeof s->cuts[0]);
    return tsr_pieces_match(&all, s->cuts[placing->target], found);
}

static tsr_status place_result(const placement_search *s, unsigned cut)
{
    tsr_placement cuts[TSR_MAX_DIMS], *const result = s->out->results[0];
    bool found;
    int first = 0, second = -1;
    TSR_TRY(find_cuts(s, cuts, &found));
    for (int i = s->form->rule->operand_count - 1; i > 0; i--)
        second = dim_of(s, i) >= 0 ? i : second;
    while (dim_of(s, first) < 0)
        first++;
    for (int k = 0; k < tsr_mesh_ndim(s->mesh); k++) {
        if (!(cut >> k & 1))
            continue;
        if (!found)
            set_misfit(s, TSR_OP_UNPLACED, first, second > first ? second : -1, k);
        result[k] = cuts[k];
        result[k].dim = tsr_op_dims_find(&s->form->results[0], s->factor);
    }
    return TSR_OK;
}

static tsr_status place_permuted(placement_search *s, unsigned cut)
{
    tsr_placement rest[TSR_OP_OPERANDS][TSR_MAX_DIMS];
    tsr_op_placements placements = {0};
    for (int i = 0; i < s->form->rule->operand_count; i++) {
        if (!s->form->operands[i].present)
            continue;
        lift_cuts(s, i, rest[i]);
        placements[i] = rest[i];
    }
    TSR_TRY(tsr_op_fit(s->form, s->mesh, placements, s->out));
    return s->out->misfit.kind == TSR_OP_FITS ? place_result(s, cut) : TSR_OK;
}

tsr_status tsr_op_place(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                        const tsr_op_placing *placing, tsr_op_fitted *out)
{
    unsigned cut = 0;
    placement_search s = {.form = form, .mesh = mesh, .placing = placing, .out = out};
    s.operands = (const tsr_op_placements *)operands;
    *out = (tsr_op_fitted){.lists = {tsr_mesh_context(mesh), NULL}};
    while (s.factor < TSR_OP_FACTORS && !form->marks[s.factor].permute)
        s.factor++;
    for (int k = 0; k < tsr_mesh_ndim(mesh) && placing && s.factor < TSR_OP_FACTORS; k++) {
        const int cutter = find_cutter(&s, k);
        cut |= cutter >= 0 ? 1u << k : 0;
        if (cutter >= 0)
            check_together(&s, cutter, k);
    }
    if (out->misfit.kind != TSR_OP_FITS)
        return TSR_OK;
    return cut ? place_permuted(&s, cut) : tsr_op_fit(form, mesh, operands, out);
}
