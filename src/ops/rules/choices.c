#include "ops/rules/choices.h"

#include "ops/rules/expand.h"

#include <tessera/sys/status.h>

/* The choices of one mesh dim, as they are found. */
typedef struct choosing {
    const tsr_op_form *form;
    const tsr_layout *const *operands;
    int mesh_dim, count;
    tsr_choice *choices;
} choosing;

static const tsr_placement *own_placement(const choosing *c, int operand)
{
    return &tsr_layout_placements(c->operands[operand])[c->mesh_dim];
}

static void add(choosing *c, tsr_choice choice)
{
    if (c->count < TSR_CHOICES)
        c->choices[c->count++] = choice;
}

static bool has(const tsr_op_form *form, int operand, int factor)
{
    const tsr_op_dims *const dims = &form->operands[operand];
    return factor >= TSR_OP_FACTORS ? tsr_op_dims_find(dims, factor) >= 0 : tsr_op_form_find(form, dims, factor) >= 0;
}

/* Adds cuts of a factor, or compound: in chunks, and as operands have it. */
static void add_cuts(choosing *c, int factor)
{
    bool used = false;
    const tsr_placement chunk = tsr_shard(0);
    for (int i = 0; i < c->form->rule->operand_count; i++)
        used = used || (c->operands[i] && !c->form->operands[i].added && has(c->form, i, factor));
    if (!used)
        return;
    add(c, (tsr_choice){TSR_CHOICE_CUT, factor, chunk, 0});
    for (int i = 0; i < c->form->rule->operand_count; i++) {
        const tsr_placement *const own = c->operands[i] ? own_placement(c, i) : NULL;
        if (!own || own->kind != TSR_SHARD || c->form->operands[i].factor[own->dim] != factor)
            continue;
        tsr_placement cut = *own;
        cut.dim = 0;
        if (!tsr_placement_same(&cut, &chunk))
            add(c, (tsr_choice){TSR_CHOICE_CUT, factor, cut, 0});
    }
}

/* Adds what passes a Partial of one operand: with those that the op is linear in jointly, or by
 * itself. */
static void add_partial(choosing *c, int operand)
{
    const tsr_op_rule *const rule = c->form->rule;
    const tsr_placement *const own = own_placement(c, operand);
    for (int i = 0; i < rule->linear_count; i++) {
        if (rule->linear[i] >> operand & 1)
            add(c, (tsr_choice){TSR_CHOICE_PASS, -1, tsr_partial(own->op), rule->linear[i]});
    }
    add(c, (tsr_choice){TSR_CHOICE_PASS, -1, tsr_partial(own->op), 1u << operand});
}

int tsr_choices_list(const tsr_op_form *form, const tsr_layout *const *operands, int mesh_dim,
                     tsr_choice choices[TSR_CHOICES])
{
    choosing c = {form, operands, mesh_dim, 0, choices};
    int first = 0;
    while (!operands[first])
        first++;
    add(&c, (tsr_choice){TSR_CHOICE_KEEP, -1, tsr_replicate(), 0});
    if (tsr_mesh_size(tsr_layout_mesh(operands[first]), mesh_dim) == 1)
        return c.count;
    for (int i = 0; i < form->rule->operand_count; i++) {
        if (operands[i] && own_placement(&c, i)->kind == TSR_PARTIAL)
            add_partial(&c, i);
    }
    for (int factor = 0; factor < TSR_OP_FACTORS; factor++) {
        if (!form->marks[factor].whole)
            add_cuts(&c, factor);
    }
    for (int i = 0; i < form->rule->compound_count; i++)
        add_cuts(&c, TSR_OP_FACTORS + i);
    if (c.count == TSR_CHOICES)
        c.count--;
    add(&c, (tsr_choice){TSR_CHOICE_REPLICATE, -1, tsr_replicate(), 0});
    return c.count;
}

/* What a choice makes of an operand on a mesh dim, but for factors of compounds. */
static tsr_placement place_simply(const tsr_op_form *form, const tsr_layout *own, int operand, const tsr_choice *choice,
                                  int k)
{
    const tsr_op_dims *const dims = &form->operands[operand];
    tsr_placement p = tsr_replicate();
    if (choice->kind == TSR_CHOICE_KEEP)
        return tsr_layout_placements(own)[k];
    if (choice->kind == TSR_CHOICE_PASS && choice->operands >> operand & 1)
        return choice->placement;
    const int dim = choice->kind == TSR_CHOICE_CUT ? tsr_op_dims_find(dims, choice->factor) : -1;
    if (dim >= 0) {
        p = choice->placement;
        p.dim = dim;
    }
    return p;
}

/* Places the factors of a compound dim. */
static tsr_status place_dim(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_dims *dims, int dim,
                            const tsr_choice *const *chosen, tsr_cut_lists *lists, tsr_placement *out, bool *sayable)
{
    int factors[TSR_MAX_DIMS], place[TSR_MAX_DIMS];
    bool any = false;
    tsr_placement cuts[TSR_MAX_DIMS];
    const int count = tsr_op_form_factors(form, dims->factor[dim], factors);
    const tsr_compound_dim compound = tsr_op_compound_dim(form, mesh, dims->factor[dim]);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        cuts[k] = tsr_replicate();
        place[k] = -1;
        for (int i = 0; i < count && chosen[k]->kind == TSR_CHOICE_CUT; i++)
            place[k] = factors[i] == chosen[k]->factor ? i : place[k];
        if (place[k] < 0)
            continue;
        cuts[k] = chosen[k]->placement;
        any = true;
    }
    if (any)
        TSR_TRY(tsr_compound_combine(&compound, place, lists, cuts, sayable));
    for (int k = 0; k < tsr_mesh_ndim(mesh) && any && *sayable; k++) {
        if (place[k] < 0)
            continue;
        out[k] = cuts[k];
        out[k].dim = dim;
    }
    return TSR_OK;
}

tsr_status tsr_choices_place(const tsr_op_form *form, const tsr_layout *const *operands, int operand,
                             const tsr_choice *const *chosen, tsr_cut_lists *lists, tsr_placement *out, bool *sayable)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(operands[operand]);
    const tsr_op_dims *const dims = &form->operands[operand];
    *sayable = true;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        out[k] = place_simply(form, operands[operand], operand, chosen[k], k);
    for (int dim = 0; dim < dims->ndim && *sayable; dim++) {
        if (dims->factor[dim] >= TSR_OP_FACTORS)
            TSR_TRY(place_dim(form, mesh, dims, dim, chosen, lists, out, sayable));
    }
    return TSR_OK;
}
