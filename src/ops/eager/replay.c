#include "ops/eager/replay.h"

#include "ops/eager/attend.h"
#include "ops/rows/gradient_check.h"
#include "ops/rows/gradient_layouts.h"
#include "ops/rows/table.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <limits.h>
#include <string.h>

/* A call once more, on layouts. */
typedef struct replay {
    const tsr_dtensor *some; /* any tensor of the call */
    const tsr_layout *copy;  /* of its layout */
    int begun, step;         /* steps that the failed rank had begun; steps so far */
    tsr_status failed;
    const tsr_kept_sentence *kept;
} replay;

/* Goes to the meetings of the next step, which is an op. */
static void attend_step(replay *r, const tsr_op_case *c, const tsr_op_outlook *outlook)
{
    if (r->step++ < r->begun)
        return;
    tsr_status_restore(r->kept, r->failed);
    tsr_eager_attend_outlook(c, outlook, r->some, c->operands[0] == r->copy, r->failed);
}

/* Begins a case of layouts that are values; `layouts` has room for them. */
static tsr_status begin_case(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                             void *const *operands, const tsr_layout **layouts, tsr_op_case *out)
{
    for (int i = 0; op->operands[i]; i++)
        layouts[i] = operands[i];
    return tsr_op_begin(caller, op, count, attributes, layouts, out);
}

/* The functions of steps; `user` is the replay. */
static tsr_status apply(void *user, const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        void *const *operands, void **results)
{
    tsr_op_case c;
    tsr_op_outlook outlook;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    TSR_TRY(begin_case(caller, op, count, attributes, operands, layouts, &c));
    TSR_TRY(tsr_op_foresee(&c, &outlook));
    attend_step(user, &c, &outlook);
    for (int i = 0; op->results[i]; i++)
        results[i] = outlook.inferred.results[i];
    return TSR_OK;
}

static tsr_status apply_into(void *user, const char *caller, const tsr_op *op, size_t count,
                             const tsr_attribute *attributes, void *const *operands, void *result)
{
    (void)result;
    void *made;
    TSR_TRY(apply(user, caller, op, count, attributes, operands, &made));
    tsr_layout_destroy(made);
    return TSR_OK;
}

/* The layouts in which gradients come back to operands that were moved. */
static tsr_status list_gradients(const tsr_op_case *c, const bool *wanted, void **made)
{
    for (int i = 0; c->op->operands[i]; i++) {
        tsr_layout *layout = NULL;
        if (wanted[i] && c->operands[i])
            TSR_TRY(tsr_layout_gradient(c->operands[i], &layout));
        made[i] = layout;
    }
    return TSR_OK;
}

/* Goes through the gradients of a case, which its peers make if they take the gradient of the
 * result. */
static tsr_status replay_gradients(replay *r, const tsr_op_case *c, const tsr_layout *gradient, const bool *wanted,
                                   void **made)
{
    tsr_op_outlook outlook;
    void *operands[TSR_OP_MOST_OPERANDS];
    const tsr_formula_values values = tsr_op_layout_values(apply, r);
    TSR_TRY(tsr_op_foresee(c, &outlook));
    if (outlook.settles)
        attend_step(r, c, &outlook);
    tsr_status status = outlook.settles ? TSR_OK : tsr_op_check_gradient(c, outlook.inferred.results[0], gradient);
    tsr_op_inferred_clear(&outlook.inferred);
    if (outlook.settles || status != TSR_OK)
        return status == TSR_OK ? list_gradients(c, wanted, made) : status;
    for (int i = 0; c->op->operands[i]; i++)
        operands[i] = (void *)c->operands[i];
    return tsr_formula_gradients(&values, c, operands, (void *)gradient, wanted, made);
}

static tsr_status differentiate(void *user, const char *caller, const tsr_op *op, size_t count,
                                const tsr_attribute *attributes, void *const *operands, void *gradient,
                                const bool *wanted, void **made)
{
    tsr_op_case c;
    replay *const outer = user, inner = *outer;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    inner.step = 0;
    inner.begun = outer->step++ < outer->begun ? INT_MAX : 0;
    TSR_TRY(begin_case(caller, op, count, attributes, operands, layouts, &c));
    return replay_gradients(&inner, &c, gradient, wanted, made);
}

tsr_status tsr_eager_attend_gradients(const tsr_op_case *c, const tsr_dtensor *gradient, const bool *wanted, int begun,
                                      tsr_status failed)
{
    tsr_op_shadow shadow;
    tsr_kept_sentence kept;
    tsr_op_case copied;
    void *made[TSR_OP_MOST_OPERANDS] = {NULL};
    tsr_status_keep_returned(&kept, failed);
    if (tsr_op_shadow_case(c, tsr_dtensor_layout(gradient), &shadow, &copied) == TSR_OK) {
        replay r = {.some = gradient,
                    .copy = shadow.copies[TSR_OP_MOST_OPERANDS],
                    .begun = begun,
                    .failed = failed,
                    .kept = &kept};
        replay_gradients(&r, &copied, r.copy, wanted, made);
    }
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(made[i]);
    tsr_op_shadow_clear(&shadow);
    return tsr_status_restore(&kept, failed);
}

/* Goes through the steps by copies of the layouts of their tensors. */
static tsr_status replay_steps(const tsr_steps *s, replay *r, const tsr_op_shadow *shadow)
{
    void *room, *tensors[TSR_OP_SHADOW_LAYOUTS];
    const size_t bytes = (size_t)s->result_count * sizeof(void *);
    const tsr_step_values layouts = {tsr_op_layout_values(apply, r), apply_into, differentiate};
    TSR_TRY(tsr_allocate(shadow->context, bytes, &room));
    void **const made = memset(room, 0, bytes);
    for (int i = 0; i < s->tensor_count; i++)
        tensors[i] = shadow->copies[i];
    const tsr_status status = s->run(s, &layouts, tensors, made);
    for (int i = 0; i < s->result_count; i++)
        tsr_layout_destroy(made[i]);
    tsr_release(shadow->context, room);
    return status;
}

tsr_status tsr_eager_attend_steps(const tsr_steps *steps, int begun, tsr_status failed)
{
    tsr_op_shadow shadow;
    tsr_kept_sentence kept;
    const tsr_layout *layouts[TSR_OP_SHADOW_LAYOUTS];
    tsr_status_keep_returned(&kept, failed);
    for (int i = 0; i < steps->tensor_count; i++)
        layouts[i] = tsr_dtensor_layout(steps->tensors[i]);
    if (tsr_op_shadow_make(steps->tensor_count, layouts, &shadow) == TSR_OK) {
        replay r = {
            .some = steps->tensors[0], .copy = shadow.copies[0], .begun = begun, .failed = failed, .kept = &kept};
        replay_steps(steps, &r, &shadow);
    }
    tsr_op_shadow_clear(&shadow);
    return tsr_status_restore(&kept, failed);
}
