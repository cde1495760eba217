/* Rules that are pointwise: SGD, AdamW and Lion. Each parameter's update is one op, which reads and
 * writes all of its tensors once; what it takes from the learning rate and the step is computed
 * before, once for all parameters, in the order of torch.optim's operations. */
#include "ops/optimizers/pointwise.h"

#include "ops/optimizers/values.h"

#include <tessera/program_ops.h>

/* The flag of a skipped step on the parameter's mesh. */
static tsr_value find_flag(const tsr_update *u)
{
    return u->in->finite == TSR_NONE ? TSR_NONE : tsr_scalar_on(u->program, u->in->finite, u->layout);
}

/* The gradient as updates take it: of any dtype that is computed in that of the states. */
static tsr_value find_gradient(const tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_value gradient = tsr_value_again(p, u->gradient);
    const tsr_layout *const layout = tsr_value_layout(p, gradient);
    const tsr_dtype computed = tsr_layout_dtype(u->layout);
    return layout && tsr_update_dtype(tsr_layout_dtype(layout)) == computed ? gradient
                                                                            : tsr_value_cast(p, gradient, computed);
}

static tsr_attribute maximize(const tsr_optimizer_options *o)
{
    return tsr_attribute_int("maximize", o->maximize != 0);
}

static void update_plainly(tsr_update *u)
{
    const tsr_optimizer_options *const o = u->in->options;
    const tsr_attribute attributes[] = {tsr_attribute_float("weight_decay", o->weight_decay), maximize(o)};
    const tsr_value operands[] = {u->old, find_gradient(u), tsr_update_number(u, u->in->rate), find_flag(u)};
    tsr_update_write(u, tsr_program_apply(u->program, "sgd_update", 2, attributes, operands, NULL));
}

/* True in the first step, where that makes a difference. */
static tsr_value find_first(const tsr_update *u)
{
    tsr_program *const p = u->program;
    if (u->in->options->dampening == 0)
        return TSR_NONE;
    return tsr_scalar_on(p, tsr_op_le(p, u->in->step, tsr_update_wide_constant(u, 1)), u->layout);
}

static void update_momentum(tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    const tsr_value state = tsr_update_state(u, "momentum_buffer", u->layout);
    const tsr_attribute attributes[] = {
        tsr_attribute_float("weight_decay", o->weight_decay), tsr_attribute_float("momentum", o->momentum),
        tsr_attribute_float("dampening", o->dampening), tsr_attribute_int("nesterov", o->nesterov != 0), maximize(o)};
    const tsr_value operands[] = {u->old,        find_gradient(u), state, tsr_update_number(u, u->in->rate),
                                  find_first(u), find_flag(u)};
    tsr_value results[TSR_OP_MOST_RESULTS] = {TSR_NONE};
    tsr_program_apply(p, "momentum_update", sizeof attributes / sizeof attributes[0], attributes, operands, results);
    tsr_op_store(p, state, results[1], TSR_NONE);
    tsr_update_write(u, results[0]);
}

/* 1 - beta^step, an f64. */
static tsr_value find_correction(const tsr_update *u, double beta)
{
    const tsr_attribute attribute = tsr_attribute_float("beta", beta);
    return tsr_program_apply(u->program, "bias_correction", 1, &attribute, (const tsr_value[]){u->in->step}, NULL);
}

static void update_adamw(tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    const tsr_value m = tsr_update_state(u, "exp_avg", u->layout), v = tsr_update_state(u, "exp_avg_sq", u->layout);
    const tsr_value rate = tsr_op_div(p, u->in->rate, find_correction(u, o->beta1));
    const tsr_value root = tsr_op_sqrt(p, find_correction(u, o->beta2));
    const tsr_attribute attributes[] = {tsr_attribute_float("beta1", o->beta1), tsr_attribute_float("beta2", o->beta2),
                                        tsr_attribute_float("epsilon", o->epsilon), maximize(o)};
    const tsr_value operands[] = {u->old,
                                  find_gradient(u),
                                  m,
                                  v,
                                  tsr_update_number(u, tsr_update_kept(u)),
                                  tsr_update_number(u, rate),
                                  tsr_update_number(u, root),
                                  find_flag(u)};
    tsr_value results[TSR_OP_MOST_RESULTS] = {TSR_NONE};
    tsr_program_apply(p, "adamw_update", sizeof attributes / sizeof attributes[0], attributes, operands, results);
    tsr_op_store(p, m, results[1], TSR_NONE);
    tsr_op_store(p, v, results[2], TSR_NONE);
    tsr_update_write(u, results[0]);
}

static void update_lion(tsr_update *u)
{
    tsr_program *const p = u->program;
    const tsr_optimizer_options *const o = u->in->options;
    const tsr_value m = tsr_update_state(u, "exp_avg", u->layout);
    const tsr_attribute attributes[] = {tsr_attribute_float("beta1", o->beta1), tsr_attribute_float("beta2", o->beta2),
                                        maximize(o)};
    const tsr_value operands[] = {
        u->old,      find_gradient(u), m, tsr_update_number(u, tsr_update_kept(u)), tsr_update_number(u, u->in->rate),
        find_flag(u)};
    tsr_value results[TSR_OP_MOST_RESULTS] = {TSR_NONE};
    tsr_program_apply(p, "lion_update", sizeof attributes / sizeof attributes[0], attributes, operands, results);
    tsr_op_store(p, m, results[1], TSR_NONE);
    tsr_update_write(u, results[0]);
}

tsr_status tsr_update_sgd(tsr_update *updates, size_t count)
{
    for (size_t i = 0; i < count; i++)
        (updates[i].in->options->momentum != 0 ? update_momentum : update_plainly)(&updates[i]);
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
