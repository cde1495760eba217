/* What is done with all gradients together: their norm, their scale, and whether they are finite.
 * Numbers of all gradients are brought together one after the other, so that the moves share
 * exchanges. */
#include "ops/optimizers/values.h"
#include "ops/programs/program.h"

#include <tessera/optimizer.h>
#include <tessera/program_ops.h>
#include <tessera/sys/memory.h>

#include <math.h>

/* Brings gradients together, widened. */
static void prepare(tsr_program *program, size_t count, tsr_value *gradients)
{
    for (size_t i = 0; i < count; i++)
        gradients[i] = tsr_value_whole(program, gradients[i]);
    for (size_t i = 0; i < count && tsr_program_records(program); i++)
        gradients[i] = tsr_value_cast(program, gradients[i],
                                      tsr_update_dtype(tsr_layout_dtype(tsr_value_layout(program, gradients[i]))));
}

/* Multiplies each gradient by a number, an f64. */
static void multiply(tsr_program *program, size_t count, tsr_value *gradients, tsr_value factor)
{
    for (size_t i = 0; i < count && tsr_program_records(program); i++) {
        const tsr_layout *const layout = tsr_value_layout(program, gradients[i]);
        const tsr_value own = tsr_value_cast(program, tsr_scalar_on(program, factor, layout), tsr_layout_dtype(layout));
        gradients[i] = tsr_op_mul(program, gradients[i], own);
    }
}

/* Numbers of all gradients, whole; the program's memory. NULL: the program failed. */
static tsr_value *make_numbers(tsr_program *program, size_t count, const tsr_value *gradients,
                               tsr_value (*number)(tsr_program *program, tsr_value gradient))
{
    void *room;
    const tsr_status status = tsr_program_array(program->context, count, sizeof(tsr_value), &room);
    if (status != TSR_OK) {
        (void)tsr_program_fail(program, status);
        return NULL;
    }
    tsr_value *const numbers = room;
    for (size_t i = 0; i < count; i++)
        numbers[i] = number(program, gradients[i]);
    for (size_t i = 0; i < count; i++)
        numbers[i] = tsr_value_whole(program, numbers[i]);
    return numbers;
}

/* Folds the numbers of all gradients by an op, from the first on. */
static tsr_value fold(tsr_program *program, size_t count, const tsr_value *gradients,
                      tsr_value (*number)(tsr_program *program, tsr_value gradient),
                      tsr_value (*op)(tsr_program *program, tsr_value x, tsr_value y))
{
    tsr_value *const numbers = make_numbers(program, count, gradients, number);
    if (!numbers)
        return TSR_NONE;
    tsr_value all = numbers[0];
    for (size_t i = 1; i < count && tsr_program_records(program); i++)
        all = op(program, all, tsr_scalar_on(program, numbers[i], tsr_value_layout(program, all)));
    tsr_release(program->context, numbers);
    return all;
}

/* One pass over the gradient before it was widened and scaled. */
static tsr_value sum_squares(tsr_program *program, tsr_value gradient)
{
    tsr_value scale = TSR_NONE;
    const tsr_value source = tsr_value_source(program, gradient, &scale);
    return tsr_program_apply(program, "sum_squares", 0, NULL, (const tsr_value[]){source, scale}, NULL);
}

static tsr_value test_elements(tsr_program *program, tsr_value gradient)
{
    const tsr_value source = tsr_value_source(program, gradient, NULL);
    return tsr_program_apply(program, "all_finite", 0, NULL, (const tsr_value[]){source}, NULL);
}

/* Checks what both calls are given. */
static bool takes(tsr_program *program, const char *call, size_t count, const tsr_value *gradients)
{
    if (!tsr_program_records(program))
        return false;
    if (!count)
        return tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT, "%s: count is 0, but must be 1 or more",
                                                        call)) != TSR_NONE;
    return tsr_values_hold(program, call, "gradients", count, gradients);
}

void tsr_optimizer_unscale(tsr_program *program, size_t count, tsr_value *gradients, tsr_value scale, tsr_value *finite)
{
    static const char call[] = "tsr_optimizer_unscale";
    if (finite)
        *finite = TSR_NONE;
    if (!takes(program, call, count, gradients))
        return;
    if (scale != TSR_NONE && !tsr_value_is_scalar(program, scale, false)) {
        (void)tsr_program_fail(program, tsr_status_set(TSR_ERROR_ARGUMENT,
                                                       "%s: scale must be a float without dims that is Replicate, "
                                                       "or TSR_NONE",
                                                       call));
        return;
    }
    const int round = tsr_program_open_round(program);
    prepare(program, count, gradients);
    if (finite)
        *finite = fold(program, count, gradients, test_elements, tsr_op_logical_and);
    if (scale != TSR_NONE)
        multiply(program, count, gradients, tsr_op_reciprocal(program, tsr_value_cast(program, scale, TSR_F64)));
    program->round = round;
}

/* Multiplies gradients of a norm so that it is at most `most`. */
static void limit(tsr_program *program, size_t count, tsr_value *gradients, tsr_value norm, double most)
{
    if (!tsr_program_records(program))
        return;
    const tsr_layout *const layout = tsr_value_layout(program, norm);
    const tsr_value above = tsr_op_add(program, norm, tsr_scalar_constant(program, 1e-6, layout, TSR_F64));
    const tsr_value factor = tsr_op_div(program, tsr_scalar_constant(program, most, layout, TSR_F64), above);
    multiply(program, count, gradients, tsr_op_clamp(program, factor, -INFINITY, 1));
}

void tsr_optimizer_clip(tsr_program *program, size_t count, tsr_value *gradients, double max_norm, tsr_value *norm)
{
    static const char call[] = "tsr_optimizer_clip";
    if (norm)
        *norm = TSR_NONE;
    if (!takes(program, call, count, gradients))
        return;
    if (!(max_norm > 0)) {
        (void)tsr_program_fail(
            program, tsr_status_set(TSR_ERROR_ARGUMENT, "%s: max_norm is %g, but must be above 0", call, max_norm));
        return;
    }
    const int round = tsr_program_open_round(program);
    prepare(program, count, gradients);
    const tsr_value all = tsr_op_sqrt(program, fold(program, count, gradients, sum_squares, tsr_op_add));
    if (norm)
        *norm = all;
    if (!isinf(max_norm))
        limit(program, count, gradients, all, max_norm);
    program->round = round;
}
