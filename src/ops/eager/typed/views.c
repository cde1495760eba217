#include "ops/eager/steps.h"
#include "ops/eager/typed/typed.h"
#include "ops/rows/views_functions.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>

/* Checks the number of operands, and completes their list with NULL. */
static tsr_status take_operands(const char *caller, int count, const tsr_dtensor *const *x,
                                const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS])
{
    TSR_TRY(tsr_settings_check_count(caller, count, TSR_OP_MOST_OPERANDS, "x", x));
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        operands[i] = i < count ? x[i] : NULL;
        if (i < count && !x[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: x[%d] is NULL", caller, i);
    }
    return TSR_OK;
}

static tsr_status run_concat(const char *caller, int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out)
{
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    TSR_TRY(take_operands(caller, count, x, operands));
    return tsr_eager_run(caller, row_by("concat", x[0]), DIM, operands, out);
}

static tsr_status run_concat_into(const char *caller, int count, const tsr_dtensor *const *x, int dim, tsr_dtensor *out)
{
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    TSR_TRY(take_operands(caller, count, x, operands));
    return tsr_eager_run_into(caller, row_by("concat", x[0]), DIM, operands, &out);
}

tsr_status tsr_concat(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out)
{
    return run_concat("tsr_concat", count, x, dim, out);
}

tsr_status tsr_concat_into(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor *out)
{
    return run_concat_into("tsr_concat_into", count, x, dim, out);
}

tsr_status tsr_concat_backward(int count, const tsr_dtensor *const *x, int dim, const tsr_dtensor *dout,
                               tsr_dtensor **dx)
{
    static const char caller[] = "tsr_concat_backward";
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
    tsr_dtensor **wanted[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(take_operands(caller, count, x, operands));
    if (!dx)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dx is NULL", caller);
    for (int i = 0; i < count; i++)
        wanted[i] = &dx[i];
    return tsr_eager_backward(caller, row_by("concat", x[0]), DIM, operands, dout, wanted);
}

/* What is stacked, and where. */
typedef struct stacking {
    int count, dim;
} stacking;

/* Views the operands of a stack with a new dim. After an error none is made. */
static tsr_status unsqueeze_all(const tsr_steps *s, const tsr_step_values *v, void *const *tensors,
                                void *views[TSR_OP_MOST_OPERANDS])
{
    const stacking *const given = s->given;
    const int dim = given->dim;
    tsr_status status = TSR_OK;
    for (int i = 0; i < given->count && status == TSR_OK; i++)
        status = v->values.apply(v->values.user, s->caller, row("unsqueeze"), DIM, &tensors[i], &views[i]);
    for (int i = 0; i < given->count && status != TSR_OK; i++)
        v->values.release(views[i]);
    return status;
}

static void release_all(const tsr_step_values *v, int count, void *const *values)
{
    for (int i = 0; i < count; i++)
        v->values.release(values[i]);
}

/* Steps of the three calls. Behind the tensors to stack there is the result into which they are
 * stacked, or the gradient. */
static tsr_status stack(const tsr_steps *s, const tsr_step_values *v, void *const *tensors, void **made)
{
    const stacking *const given = s->given;
    const int dim = given->dim;
    void *views[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(unsqueeze_all(s, v, tensors, views));
    const tsr_status status =
        s->result_count > 0
            ? v->values.apply(v->values.user, s->caller, row("concat"), DIM, views, made)
            : v->apply_into(v->values.user, s->caller, row("concat"), DIM, views, tensors[given->count]);
    release_all(v, given->count, views);
    return status;
}

static tsr_status stack_backward(const tsr_steps *s, const tsr_step_values *v, void *const *tensors, void **made)
{
    const stacking *const given = s->given;
    bool wanted[TSR_OP_MOST_OPERANDS] = {false};
    const int dim = given->dim;
    void *views[TSR_OP_MOST_OPERANDS] = {NULL}, *parts[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(unsqueeze_all(s, v, tensors, views));
    for (int i = 0; i < given->count; i++)
        wanted[i] = true;
    tsr_status status =
        v->differentiate(v->values.user, s->caller, row("concat"), DIM, views, tensors[given->count], wanted, parts);
    for (int i = 0; i < given->count && status == TSR_OK; i++)
        status =
            v->differentiate(v->values.user, s->caller, row("unsqueeze"), DIM, &tensors[i], parts[i], wanted, &made[i]);
    release_all(v, given->count, parts);
    release_all(v, given->count, views);
    return status;
}

/* Runs the steps of a call on `count` tensors and `last`, which may be NULL. */
static tsr_status run_stack(const tsr_steps *steps, int count, const tsr_dtensor *const *x, int dim,
                            const tsr_dtensor *last, tsr_dtensor **results)
{
    const tsr_dtensor *tensors[TSR_OP_MOST_OPERANDS + 1];
    const stacking given = {count, dim};
    tsr_steps s = *steps;
    TSR_TRY(take_operands(s.caller, count, x, tensors));
    tensors[count] = last;
    s.tensors = tensors;
    s.tensor_count = count + (last != NULL);
    s.given = &given;
    return tsr_eager_run_steps(&s, results);
}

tsr_status tsr_stack(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor **out)
{
    const tsr_steps steps = {.caller = "tsr_stack", .run = stack, .result_count = 1};
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", steps.caller);
    return run_stack(&steps, count, x, dim, NULL, out);
}

tsr_status tsr_stack_into(int count, const tsr_dtensor *const *x, int dim, tsr_dtensor *out)
{
    const tsr_steps steps = {.caller = "tsr_stack_into", .run = stack};
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", steps.caller);
    return run_stack(&steps, count, x, dim, out, NULL);
}

tsr_status tsr_stack_backward(int count, const tsr_dtensor *const *x, int dim, const tsr_dtensor *dout,
                              tsr_dtensor **dx)
{
    const tsr_steps steps = {.caller = "tsr_stack_backward", .run = stack_backward, .result_count = count};
    if (!dx || !dout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", steps.caller, dx ? "dout" : "dx");
    return run_stack(&steps, count, x, dim, dout, dx);
}

static tsr_status check_split(const char *caller, const tsr_dtensor *x, int *dim, int count, const int64_t *sizes,
                              const void *list)
{
    if (!x || !list)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, x ? "the list of results" : "x");
    return tsr_settings_check_sizes(caller, tsr_dtensor_layout(x), dim, count, sizes);
}

/* Which parts of a dim there are. */
typedef struct splitting {
    int dim;
    const int64_t *sizes;
} splitting;

static tsr_status split(const tsr_steps *s, const tsr_step_values *v, void *const *tensors, void **made)
{
    const splitting *const given = s->given;
    const int dim = given->dim;
    int64_t start = 0;
    for (int i = 0; i < s->result_count; i++) {
        const int64_t length = given->sizes[i];
        TSR_TRY(v->values.apply(v->values.user, s->caller, row("narrow"), LENGTH, tensors, &made[i]));
        start += length;
    }
    return TSR_OK;
}

tsr_status tsr_split(const tsr_dtensor *x, int dim, int count, const int64_t *sizes, tsr_dtensor **out)
{
    static const char caller[] = "tsr_split";
    TSR_TRY(check_split(caller, x, &dim, count, sizes, out));
    const splitting given = {dim, sizes};
    const tsr_steps steps = {
        .caller = caller, .tensor_count = 1, .tensors = &x, .result_count = count, .run = split, .given = &given};
    return tsr_eager_run_steps(&steps, out);
}

/* Writes the gradient of one part where it lies in that of the whole; NULL: 0. No policy moves a
 * part elsewhere, so ranks need not meet. */
static tsr_status write_part(const char *caller, tsr_dtensor *whole, int dim, int64_t start, int64_t length,
                             const tsr_dtensor *dout)
{
    tsr_dtensor *part;
    TSR_TRY(tsr_eager_check_fit(caller, row_by("narrow", whole), LENGTH, OPERANDS(whole)));
    TSR_TRY(tsr_eager_run(caller, row_by("narrow", whole), LENGTH, OPERANDS(whole), &part));
    const int64_t end = length, step = 1;
    start = 0;
    tsr_status status = dout ? tsr_eager_check_fit(caller, row_by("slice", dout), RANGE, OPERANDS(dout))
                             : tsr_dtensor_fill(part, 0, NULL);
    if (dout && status == TSR_OK)
        status = tsr_eager_run_into(caller, row_by("slice", dout), RANGE, OPERANDS(dout), &part);
    tsr_dtensor_destroy(part);
    return status;
}

tsr_status tsr_split_backward(const tsr_dtensor *x, int dim, int count, const int64_t *sizes,
                              const tsr_dtensor *const *dout, tsr_dtensor **dx)
{
    static const char caller[] = "tsr_split_backward";
    tsr_layout *layout;
    tsr_dtensor *whole;
    TSR_TRY(check_split(caller, x, &dim, count, sizes, dout));
    if (!dx)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dx is NULL", caller);
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(x), &layout));
    tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), &whole);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    int64_t start = 0;
    for (int i = 0; i < count && status == TSR_OK; i++) {
        status = write_part(caller, whole, dim, start, sizes[i], dout[i]);
        start += sizes[i];
    }
    if (status == TSR_OK)
        *dx = whole;
    else
        tsr_dtensor_destroy(whole);
    return status;
}
