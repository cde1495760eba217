/* Rules that are pointwise: SGD, AdamW and Lion, in the order of torch.optim's operations. */
#include "ops/optimizers/pointwise.h"

#include "ops/optimizers/values.h"

#include <tessera/program_ops.h>

/* x * a + y * b, where a factor of 1 multiplies nothing. */
static tsr_value combine(tsr_program *p, tsr_value x, double a, tsr_value y, double b)
{
    const tsr_value first = a == 1 ? x : tsr_op_scale(p, x, a), second = b == 1 ? y : tsr_op_scale(p, y, b);
    return tsr_op_add(p, first, second);
}

/* The momentum of SGD: its first step takes the gradient as it is. */
static tsr_value find_momentum(const tsr_update *u, tsr_value state, tsr_value gradient)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    const tsr_value next = combine(p, state, o->momentum, gradient, 1 - o->dampening);
    if (o->dampening == 0)
        return next;
    const tsr_value is_first = tsr_op_le(p, u->in->step, tsr_update_wide_constant(u, 1));
    return tsr_op_where(p, tsr_scalar_on(p, is_first, u->layout), gradient, next);
}

static void update_sgd(tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    tsr_update_begin(u);
    tsr_value state = TSR_NONE, momentum = TSR_NONE;
    tsr_value g = o->weight_decay == 0 ? u->gradient : combine(p, u->gradient, 1, u->old, o->weight_decay);
    if (o->momentum != 0) {
        state = tsr_update_state(u, "momentum_buffer", u->layout);
        momentum = find_momentum(u, state, g);
        g = o->nesterov ? combine(p, g, 1, momentum, o->momentum) : momentum;
    }
    const tsr_value made = tsr_op_sub(p, u->old, tsr_op_mul(p, g, tsr_update_number(u, u->in->rate)));
    if (o->momentum != 0)
        tsr_update_store(u, state, momentum);
    tsr_update_finish(u, made);
}

/* 1 - beta^step, an f64. */
static tsr_value find_correction(const tsr_update *u, double beta)
{
    tsr_program *const p = u->program;
    const tsr_value power = tsr_op_pow(p, tsr_update_wide_constant(u, beta), u->in->step);
    return tsr_op_sub(p, tsr_update_wide_constant(u, 1), power);
}

static void update_adamw(tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    tsr_update_begin(u);
    const tsr_value m = tsr_update_state(u, "exp_avg", u->layout), v = tsr_update_state(u, "exp_avg_sq", u->layout);
    const tsr_value rate = tsr_op_div(p, u->in->rate, find_correction(u, o->beta1));
    const tsr_value root = tsr_op_sqrt(p, find_correction(u, o->beta2));
    const tsr_value kept = tsr_update_decayed(u);
    const tsr_value m1 = tsr_update_lerp(u, m, u->gradient, 1 - o->beta1);
    const tsr_value squares = tsr_op_mul(p, tsr_op_scale(p, u->gradient, 1 - o->beta2), u->gradient);
    const tsr_value v1 = tsr_op_add(p, tsr_op_scale(p, v, o->beta2), squares);
    const tsr_value deviation = tsr_op_div(p, tsr_op_sqrt(p, v1), tsr_update_number(u, root));
    const tsr_value divisor = tsr_op_add(p, deviation, tsr_update_constant(u, o->epsilon));
    const tsr_value step = tsr_op_div(p, tsr_op_mul(p, m1, tsr_update_number(u, rate)), divisor);
    tsr_update_store(u, m, m1);
    tsr_update_store(u, v, v1);
    tsr_update_finish(u, tsr_op_sub(p, kept, step));
}

static void update_lion(tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    tsr_update_begin(u);
    const tsr_value m = tsr_update_state(u, "exp_avg", u->layout), kept = tsr_update_decayed(u);
    const tsr_value direction = tsr_op_sign(p, combine(p, m, o->beta1, u->gradient, 1 - o->beta1));
    const tsr_value made = tsr_op_sub(p, kept, tsr_op_mul(p, direction, tsr_update_number(u, u->in->rate)));
    tsr_update_store(u, m, combine(p, m, o->beta2, u->gradient, 1 - o->beta2));
    tsr_update_finish(u, made);
}

tsr_status tsr_update_sgd(tsr_update *updates, size_t count)
{
    for (size_t i = 0; i < count; i++)
        update_sgd(&updates[i]);
    return TSR_OK;
}

tsr_status tsr_update_adamw(tsr_update *updates, size_t count)
{
    for (size_t i = 0; i < count; i++)
        update_adamw(&updates[i]);
    return TSR_OK;
}

tsr_status tsr_update_lion(tsr_update *updates, size_t count)
{
    for (size_t i = 0; i < count; i++)
        update_lion(&updates[i]);
    return TSR_OK;
}
