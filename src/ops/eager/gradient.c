#include "ops/eager/gradient.h"

#include "ops/eager/run.h"
#include "ops/eager/settle.h"
#include "ops/rows/formula.h"
#include "ops/rows/gradient_layouts.h"
#include "ops/rows/table.h"

#include <tessera/sys/status.h>

#include <string.h>

static const tsr_layout *layout_of(const void *value)
{
    return tsr_dtensor_layout(value);
}

static void *retain(void *value)
{
    return value ? tsr_dtensor_retain(value) : NULL;
}

static void release(void *value)
{
    tsr_dtensor_destroy(value);
}

/* The operand over the same memory, Replicate where it is Partial: its values are not read. */
static tsr_status make_like(void *operand, void **out)
{
    const tsr_dtensor *const x = operand;
    tsr_dtensor *made;
    const tsr_layout *const own = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *layout;
    tsr_op_reduced(own, placements);
    TSR_TRY(tsr_layout_with(own, placements, &layout));
    const tsr_status status = tsr_dtensor_from_local(&local, layout, NULL, &made);
    tsr_layout_destroy(layout);
    if (status == TSR_OK)
        *out = made;
    return status;
}

static tsr_status apply(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        void *const *operands, void **results)
{
    const tsr_dtensor *taken[TSR_OP_MOST_OPERANDS];
    tsr_dtensor *made[TSR_OP_MOST_RESULTS] = {NULL};
    for (int i = 0; op->operands[i]; i++)
        taken[i] = operands[i];
    TSR_TRY(tsr_eager_run(caller, op, count, attributes, taken, made));
    for (int i = 0; op->results[i]; i++)
        results[i] = made[i];
    return TSR_OK;
}

static const tsr_formula_values dtensors = {layout_of, retain, release, make_like, apply};

/* The gradient layout of a result, varying: Partial(sum) on the mesh dims of `dims` on which the
 * result itself is Replicate. */
static tsr_status vary_layout(const tsr_layout *result, const tsr_layout *invariant, unsigned dims, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(result)); k++) {
        const bool varies = dims >> k & 1 && tsr_layout_placements(result)[k].kind == TSR_REPLICATE;
        placements[k] = varies ? tsr_partial(TSR_SUM) : tsr_layout_placements(invariant)[k];
    }
    return tsr_layout_with(invariant, placements, out);
}

static tsr_status refuse_gradient(const tsr_op_case *c, const tsr_layout *own, const tsr_layout *invariant,
                                  const tsr_layout *varying)
{
    char ours[256], theirs[256], terms[256];
    tsr_layout_print(own, ours, sizeof ours);
    tsr_layout_print(invariant, theirs, sizeof theirs);
    tsr_layout_print(varying, terms, sizeof terms);
    const bool both = strcmp(theirs, terms) != 0;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "%s: dout is \"%s\", but must have the result's shape and dtype %s in its gradient layout, \"%s\"%s%s%s",
        c->caller, ours, tsr_dtype_name(tsr_layout_dtype(invariant)), theirs,
        both ? ", or, if each rank has a term of it, \"" : "", both ? terms : "", both ? "\"" : "");
}

/* Checks that the gradient has one of the layouts that it may have, invariant or varying. */
static tsr_status check_gradient(const tsr_op_case *c, const tsr_layout *result, const tsr_dtensor *gradient)
{
    unsigned terms = 0;
    tsr_layout *invariant = NULL, *varying = NULL, *most = NULL;
    const tsr_layout *const own = tsr_dtensor_layout(gradient);
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(own)); k++)
        terms |= tsr_layout_placements(own)[k].kind == TSR_PARTIAL ? 1u << k : 0;
    tsr_status status = tsr_op_result_gradient(c, result, &invariant);
    if (status == TSR_OK && terms)
        status = vary_layout(result, invariant, terms, &varying);
    if (status == TSR_OK && !terms)
        varying = tsr_layout_retain(invariant);
    if (status == TSR_OK && !tsr_layout_equal(varying, own)) {
        status = vary_layout(result, invariant, ~0u, &most);
        if (status == TSR_OK)
            status = refuse_gradient(c, own, invariant, most);
    }
    tsr_layout_destroy(most);
    tsr_layout_destroy(varying);
    tsr_layout_destroy(invariant);
    return status;
}

/* Makes gradients of operands that are moved to where they fit, and brings them back. */
static tsr_status run_settled(const tsr_op_case *c, const tsr_eager_answer *answer, size_t count,
                              const tsr_attribute *attributes, const tsr_dtensor *const *operands,
                              const tsr_dtensor *gradient, tsr_dtensor **const *wanted)
{
    tsr_eager_settled settled;
    tsr_dtensor *made[TSR_OP_MOST_OPERANDS] = {NULL}, **inner[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(tsr_eager_settle(c, answer, operands, &settled));
    for (int i = 0; c->op->operands[i]; i++)
        inner[i] = wanted[i] ? &made[i] : NULL;
    tsr_status status = tsr_eager_backward(c->caller, c->op, count, attributes,
                                           (const tsr_dtensor *const *)settled.operands, gradient, inner);
    for (int i = 0; c->op->operands[i] && status == TSR_OK; i++) {
        if (made[i])
            status = tsr_eager_unsettle(operands[i], settled.operands[i], &made[i]);
    }
    for (int i = 0; c->op->operands[i]; i++) {
        if (wanted[i] && status == TSR_OK)
            *wanted[i] = made[i];
        else
            tsr_dtensor_destroy(made[i]);
    }
    tsr_eager_settled_clear(&settled);
    return status;
}

/* Checks that the gradient has the gradient layout of the result; `*answer` settles where operands
 * must be moved first. */
static tsr_status find_answer(const tsr_op_case *c, const tsr_dtensor *gradient, const tsr_eager_answer **answer)
{
    int some = 0;
    tsr_eager_cache *cache;
    if (!gradient)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dout is NULL", c->caller);
    while (!c->operands[some])
        some++;
    TSR_TRY(tsr_eager_cache_of(tsr_layout_mesh(c->operands[some]), &cache));
    if (!tsr_eager_is_on(cache, tsr_dtensor_layout(gradient)))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: dout is on another mesh than %s; both must be on one mesh, over one communicator",
                              c->caller, c->op->operands[some]);
    TSR_TRY(tsr_eager_answer_for(cache, c, answer));
    return (*answer)->settles ? TSR_OK : check_gradient(c, (*answer)->inferred.results[0], gradient);
}

tsr_status tsr_eager_backward(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                              tsr_dtensor **const *wanted)
{
    tsr_op_case c;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS] = {NULL};
    void *taken[TSR_OP_MOST_OPERANDS], *made[TSR_OP_MOST_OPERANDS] = {NULL};
    bool is_wanted[TSR_OP_MOST_OPERANDS];
    const tsr_eager_answer *answer;
    for (int i = 0; op->operands[i]; i++) {
        layouts[i] = operands[i] ? tsr_dtensor_layout(operands[i]) : NULL;
        taken[i] = (void *)operands[i];
        is_wanted[i] = wanted[i] != NULL;
    }
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, layouts, &c));
    TSR_TRY(find_answer(&c, gradient, &answer));
    if (answer->settles)
        return run_settled(&c, answer, count, attributes, operands, gradient, wanted);
    TSR_TRY(tsr_formula_gradients(&dtensors, &c, taken, (void *)gradient, is_wanted, made));
    for (int i = 0; op->operands[i]; i++) {
        if (wanted[i])
            *wanted[i] = made[i];
    }
    return TSR_OK;
}

tsr_status tsr_op_backward(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                           const tsr_dtensor *const *operands, const tsr_dtensor *gradient, tsr_dtensor **const *wanted)
{
    if (!op || !operands || !wanted)
        return tsr_op_refuse_null("tsr_op_backward", op, operands, "wanted");
    return tsr_eager_backward(op->name, op, count, attributes, operands, gradient, wanted);
}
