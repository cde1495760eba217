/* Layouts of gradients, found by the formulas on layouts alone. */
#include "ops/rows/gradient_layouts.h"

#include "ops/rows/table.h"

#include <tessera/sys/status.h>

static const tsr_layout *layout_of(const void *value)
{
    return value;
}

static void *retain(void *value)
{
    return value ? tsr_layout_retain(value) : NULL;
}

static void release(void *value)
{
    tsr_layout_destroy(value);
}

void tsr_op_reduced(const tsr_layout *layout, tsr_placement placements[TSR_MAX_DIMS])
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        const tsr_placement *const own = &tsr_layout_placements(layout)[k];
        placements[k] = own->kind == TSR_PARTIAL ? tsr_replicate() : *own;
    }
}

static tsr_status make_like(void *operand, void **out)
{
    const tsr_layout *const own = operand;
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *made;
    tsr_op_reduced(own, placements);
    TSR_TRY(tsr_layout_with(own, placements, &made));
    *out = made;
    return TSR_OK;
}

tsr_formula_values tsr_op_layout_values(tsr_formula_apply *apply, void *user)
{
    return (tsr_formula_values){layout_of, retain, release, make_like, apply, user};
}

/* Applies a row to layouts. */
static tsr_status infer(void *user, const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        void *const *operands, void **results)
{
    (void)user;
    tsr_op_case c;
    tsr_op_inferred inferred;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; op->operands[i]; i++)
        layouts[i] = operands[i];
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, layouts, &c));
    TSR_TRY(tsr_op_infer(&c, &inferred));
    for (int i = 0; op->results[i]; i++)
        results[i] = inferred.results[i];
    return TSR_OK;
}

/* True if an operand is Partial of an op that has no gradient. */
static bool has_chosen_terms(const tsr_op_case *c, int mesh_ndim)
{
    for (int i = 0; c->op->operands[i]; i++) {
        for (int k = 0; c->operands[i] && k < mesh_ndim; k++) {
            const tsr_placement *const p = &tsr_layout_placements(c->operands[i])[k];
            if (p->kind == TSR_PARTIAL && p->op != TSR_SUM && p->op != TSR_AVG)
                return true;
        }
    }
    return false;
}

tsr_status tsr_op_result_gradient(const tsr_op_case *c, const tsr_layout *result, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    if (has_chosen_terms(c, tsr_mesh_ndim(tsr_layout_mesh(result))))
        return tsr_layout_gradient(result, out);
    tsr_op_reduced(result, placements);
    return tsr_layout_with(result, placements, out);
}

/* The gradient layout of an op's first result. */
static tsr_status find_gradient(const tsr_op_case *c, tsr_layout **out)
{
    tsr_op_inferred inferred;
    TSR_TRY(tsr_op_infer(c, &inferred));
    const tsr_status status = tsr_op_result_gradient(c, inferred.results[0], out);
    tsr_op_inferred_clear(&inferred);
    return status;
}

tsr_status tsr_op_gradient_layout(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                  const tsr_layout *const *operands, tsr_layout **out)
{
    tsr_op_case c;
    if (!op || !operands || !out)
        return tsr_op_refuse_null("tsr_op_gradient_layout", op, operands, "out");
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    return find_gradient(&c, out);
}

tsr_status tsr_op_propagate_gradients(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                      const tsr_layout *const *operands, const tsr_layout *gradient, const bool *wanted,
                                      tsr_layout **gradients)
{
    const tsr_formula_values values = tsr_op_layout_values(infer, NULL);
    tsr_op_case c;
    tsr_layout *found = NULL;
    void *taken[TSR_OP_MOST_OPERANDS], *made[TSR_OP_MOST_OPERANDS] = {NULL};
    if (!op || !operands || !wanted || !gradients)
        return tsr_op_refuse_null("tsr_op_propagate_gradients", op, operands, wanted ? "gradients" : "wanted");
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    if (!gradient)
        TSR_TRY(find_gradient(&c, &found));
    for (int i = 0; op->operands[i]; i++)
        taken[i] = (void *)operands[i];
    const tsr_status status =
        tsr_formula_gradients(&values, &c, taken, (void *)(gradient ? gradient : found), wanted, made);
    tsr_layout_destroy(found);
    for (int i = 0; op->operands[i] && status == TSR_OK; i++)
        gradients[i] = made[i];
    return status;
}
