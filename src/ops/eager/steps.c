#include "ops/eager/steps.h"

#include "ops/eager/gradient.h"
#include "ops/eager/replay.h"
#include "ops/eager/run.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

static void list_operands(const tsr_op *op, void *const *operands, const tsr_dtensor **out)
{
    for (int i = 0; op->operands[i]; i++)
        out[i] = operands[i];
}

/* The functions of steps that are not rows of formulas. */
static tsr_status apply_into(void *user, const char *caller, const tsr_op *op, size_t count,
                             const tsr_attribute *attributes, void *const *operands, void *result)
{
    const tsr_dtensor *taken[TSR_OP_MOST_OPERANDS];
    tsr_dtensor *const into = result;
    ++*(int *)user;
    list_operands(op, operands, taken);
    return tsr_eager_run_into(caller, op, count, attributes, taken, &into);
}

static tsr_status differentiate(void *user, const char *caller, const tsr_op *op, size_t count,
                                const tsr_attribute *attributes, void *const *operands, void *gradient,
                                const bool *wanted, void **made)
{
    const tsr_dtensor *taken[TSR_OP_MOST_OPERANDS];
    tsr_dtensor *gradients[TSR_OP_MOST_OPERANDS] = {NULL}, **outputs[TSR_OP_MOST_OPERANDS] = {NULL};
    ++*(int *)user;
    list_operands(op, operands, taken);
    for (int i = 0; op->operands[i]; i++)
        outputs[i] = wanted[i] ? &gradients[i] : NULL;
    TSR_TRY(tsr_eager_backward(caller, op, count, attributes, taken, gradient, outputs));
    for (int i = 0; op->operands[i]; i++)
        made[i] = gradients[i];
    return TSR_OK;
}

/* Runs the steps; those that have begun are counted. */
static tsr_status run(const tsr_steps *s, void **made, int *begun)
{
    const tsr_step_values dtensors = {tsr_eager_values(begun), apply_into, differentiate};
    void *tensors[TSR_OP_SHADOW_LAYOUTS];
    for (int i = 0; i < s->tensor_count; i++)
        tensors[i] = (void *)s->tensors[i];
    return s->run(s, &dtensors, tensors, made);
}

tsr_status tsr_eager_run_steps(const tsr_steps *steps, tsr_dtensor **results)
{
    int begun = 0;
    void *room = NULL;
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(tsr_dtensor_layout(steps->tensors[0])));
    const size_t bytes = (size_t)steps->result_count * sizeof(void *);
    tsr_status status = tsr_allocate(context, bytes, &room);
    void **const made = room;
    if (status == TSR_OK) {
        memset(made, 0, bytes);
        status = run(steps, made, &begun);
    }
    for (int i = 0; made && i < steps->result_count; i++) {
        if (status == TSR_OK)
            results[i] = made[i];
        else
            tsr_dtensor_destroy(made[i]);
    }
    tsr_release(context, room);
    return status == TSR_OK ? TSR_OK : tsr_eager_attend_steps(steps, begun, status);
}
