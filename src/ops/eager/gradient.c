#include "ops/eager/gradient.h"

#include "ops/eager/replay.h"
#include "ops/eager/run.h"
#include "ops/eager/settle.h"
#include "ops/rows/gradient_check.h"
#include "ops/rows/gradient_layouts.h"
#include "ops/rows/table.h"

#include <tessera/sys/status.h>

static const tsr_layout *layout_of(const void *value)
{
    return tsr_dtensor_layout(value);
}

static const tsr_mesh *layout_mesh(const tsr_dtensor *x)
{
    return tsr_layout_mesh(tsr_dtensor_layout(x));
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

/* Applies a row. */
static tsr_status apply(void *user, const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        void *const *operands, void **results)
{
    const tsr_dtensor *taken[TSR_OP_MOST_OPERANDS];
    tsr_dtensor *made[TSR_OP_MOST_RESULTS] = {NULL};
    for (int i = 0; op->operands[i]; i++)
        taken[i] = operands[i];
    ++*(int *)user;
    TSR_TRY(tsr_eager_run(caller, op, count, attributes, taken, made));
    for (int i = 0; op->results[i]; i++)
        results[i] = made[i];
    return TSR_OK;
}

tsr_formula_values tsr_eager_values(int *begun)
{
    return (tsr_formula_values){layout_of, retain, release, make_like, apply, begun};
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
    status = tsr_eager_unsettle(c, operands, &settled, inner, status);
    for (int i = 0; c->op->operands[i]; i++) {
        if (wanted[i] && status == TSR_OK)
            *wanted[i] = made[i];
        else
            tsr_dtensor_destroy(made[i]);
    }
    tsr_eager_settled_clear(&settled);
    return status;
}

/* Checks that the gradient is there, on the mesh of the operands. */
static tsr_status check_mesh(const tsr_op_case *c, const tsr_dtensor *gradient)
{
    int some = 0;
    if (!gradient)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dout is NULL", c->caller);
    while (!c->operands[some])
        some++;
    if (tsr_op_are_on_one_mesh(tsr_layout_mesh(c->operands[some]), layout_mesh(gradient)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dout is on another mesh than %s; both must be on one mesh, over one communicator",
                          c->caller, c->op->operands[some]);
}

/* Checks that the gradient has the gradient layout of the result; `*answer` settles where operands
 * must be moved first. */
static tsr_status find_answer(const tsr_op_case *c, const tsr_dtensor *gradient, const tsr_eager_answer **answer)
{
    tsr_eager_cache *cache;
    TSR_TRY(tsr_eager_cache_of(layout_mesh(gradient), &cache));
    TSR_TRY(tsr_eager_answer_for(cache, c, answer));
    return (*answer)->settles ? TSR_OK
                              : tsr_op_check_gradient(c, (*answer)->inferred.results[0], tsr_dtensor_layout(gradient));
}

/* Makes gradients by the formulas. */
static tsr_status run_formulas(const tsr_op_case *c, const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                               const bool *is_wanted, void **made)
{
    int begun = 0;
    void *taken[TSR_OP_MOST_OPERANDS];
    const tsr_formula_values dtensors = tsr_eager_values(&begun);
    for (int i = 0; c->op->operands[i]; i++)
        taken[i] = (void *)operands[i];
    const tsr_status status = tsr_formula_gradients(&dtensors, c, taken, (void *)gradient, is_wanted, made);
    return status != TSR_OK ? tsr_eager_attend_gradients(c, gradient, is_wanted, begun, status) : TSR_OK;
}

tsr_status tsr_eager_backward(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                              tsr_dtensor **const *wanted)
{
    tsr_op_case c;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS] = {NULL};
    void *made[TSR_OP_MOST_OPERANDS] = {NULL};
    bool is_wanted[TSR_OP_MOST_OPERANDS];
    const tsr_eager_answer *answer;
    for (int i = 0; op->operands[i]; i++) {
        layouts[i] = operands[i] ? tsr_dtensor_layout(operands[i]) : NULL;
        is_wanted[i] = wanted[i] != NULL;
    }
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, layouts, &c));
    TSR_TRY(check_mesh(&c, gradient));
    const tsr_status found = find_answer(&c, gradient, &answer);
    if (found == TSR_ERROR_MEMORY)
        return tsr_eager_attend_gradients(&c, gradient, is_wanted, 0, found);
    TSR_TRY(found);
    if (answer->settles)
        return run_settled(&c, answer, count, attributes, operands, gradient, wanted);
    TSR_TRY(run_formulas(&c, operands, gradient, is_wanted, made));
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
