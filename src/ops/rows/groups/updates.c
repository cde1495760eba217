#include "ops/kernels/updates/updates.h"

#include "ops/kernels/pointwise.h"
#include "ops/rows/checks.h"
#include "ops/rows/rows.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The dtype in which an operand of floats is computed; TSR_DTYPE_NONE: it has none. */
static tsr_dtype find_computed(const tsr_layout *operand)
{
    const tsr_dtype dtype = tsr_layout_dtype(operand);
    return tsr_dtype_get(dtype)->kind == TSR_CLASS_FLOAT ? tsr_pointwise_computes_in(dtype) : TSR_DTYPE_NONE;
}

static tsr_status check_shape(const tsr_op_case *c, int operand)
{
    const tsr_layout *const weight = c->operands[0], *const other = c->operands[operand];
    const int ndim = tsr_layout_ndim(weight);
    if (tsr_layout_ndim(other) == ndim &&
        (!ndim || memcmp(tsr_layout_shape(other), tsr_layout_shape(weight), (size_t)ndim * sizeof(int64_t)) == 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s must have the shape of %s", c->caller, c->op->operands[operand],
                          c->op->operands[0]);
}

/* Checks a tensor without dims. */
static tsr_status check_scalar(const tsr_op_case *c, int operand, tsr_dtype dtype)
{
    const tsr_layout *const layout = operand >= 0 ? c->operands[operand] : NULL;
    if (!layout)
        return TSR_OK;
    if (tsr_layout_dtype(layout) != dtype)
        return tsr_refuse_dtype(c, operand, tsr_dtype_name(dtype));
    if (tsr_layout_ndim(layout) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %d dims, but must have none", c->caller,
                              c->op->operands[operand], tsr_layout_ndim(layout));
    return TSR_OK;
}

static tsr_status check_state(const tsr_op_case *c, int operand, tsr_dtype dtype)
{
    if (tsr_layout_dtype(c->operands[operand]) != dtype)
        return tsr_refuse_dtype(c, operand,
                                dtype == TSR_F64 ? "f64 with a weight of f64" : "f32 with a weight of this dtype");
    return check_shape(c, operand);
}

/* The weight, its gradient and the states have one shape, numbers and flags have no dims. States
 * and numbers are f64 with a weight of f64, and else f32; gradients are f64 with that of f64. */
static tsr_status check_update(const tsr_op_case *c, tsr_dtype *results)
{
    const tsr_update_operands *const o = tsr_update_operands_of(c->op->code);
    const tsr_dtype dtype = find_computed(c->operands[0]);
    const int numbers[] = {o->kept, o->rate, o->root};
    if (dtype == TSR_DTYPE_NONE)
        return tsr_refuse_dtype(c, 0, "f64, f32, f16, bf16");
    if (find_computed(c->operands[1]) != dtype)
        return tsr_refuse_dtype(
            c, 1, dtype == TSR_F64 ? "f64 with a weight of f64" : "f32, f16 or bf16 with a weight of this dtype");
    TSR_TRY(check_shape(c, 1));
    results[0] = tsr_layout_dtype(c->operands[0]);
    for (int i = 0; i < o->states; i++) {
        TSR_TRY(check_state(c, 2 + i, dtype));
        results[1 + i] = dtype;
    }
    for (int i = 0; i < 3; i++)
        TSR_TRY(check_scalar(c, numbers[i], dtype));
    TSR_TRY(check_scalar(c, o->first, TSR_BOOL));
    return check_scalar(c, o->finite, TSR_BOOL);
}

/* Updates of optimizers, which tsr_optimizer_update() records. Weight, gradient and states lie
 * alike; numbers are whole on all ranks. They have no gradients: an update ends a step. */
#define UPDATE(loop) .check = check_update, .host = tsr_update_run, .code = TSR_UPDATE_##loop

#define FLOAT(attribute, value)                                                                                        \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_FLOAT, .number = (value)                                              \
    }
#define FLAG(attribute)                                                                                                \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_INT                                                                   \
    }

const tsr_op tsr_rows_updates[] = {
    {.name = "sgd_update",
     .rule = "..., ..., ..., ... -> ...",
     .operands = {"weight", "gradient", "rate", "finite"},
     .results = {"new_weight"},
     .optional = 1u << 3,
     .attributes = {FLOAT("weight_decay", 0), FLAG("maximize")},
     UPDATE(SGD)},
    {.name = "momentum_update",
     .rule = "..., ..., ..., ..., ..., ... -> ..., ...",
     .operands = {"weight", "gradient", "momentum_buffer", "rate", "first", "finite"},
     .results = {"new_weight", "new_momentum_buffer"},
     .optional = 1u << 4 | 1u << 5,
     .attributes = {FLOAT("weight_decay", 0), FLOAT("momentum", 0), FLOAT("dampening", 0), FLAG("nesterov"),
                    FLAG("maximize")},
     UPDATE(MOMENTUM)},
    {.name = "adamw_update",
     .rule = "..., ..., ..., ..., ..., ..., ..., ... -> ..., ..., ...",
     .operands = {"weight", "gradient", "exp_avg", "exp_avg_sq", "kept", "rate", "root", "finite"},
     .results = {"new_weight", "new_exp_avg", "new_exp_avg_sq"},
     .optional = 1u << 7,
     .attributes = {FLOAT("beta1", 0.9), FLOAT("beta2", 0.999), FLOAT("epsilon", 1e-8), FLAG("maximize")},
     UPDATE(ADAMW)},
    {.name = "lion_update",
     .rule = "..., ..., ..., ..., ..., ... -> ..., ...",
     .operands = {"weight", "gradient", "exp_avg", "kept", "rate", "finite"},
     .results = {"new_weight", "new_exp_avg"},
     .optional = 1u << 5,
     .attributes = {FLOAT("beta1", 0.9), FLOAT("beta2", 0.99), FLAG("maximize")},
     UPDATE(LION)},
    /* What AdamW divides means by: 1 - beta^step, rounded as by a power that is rounded once. */
    {.name = "bias_correction",
     .rule = "... -> ...",
     .operands = {"step"},
     .results = {"out"},
     .attributes = {FLOAT("beta", 0.9)},
     .check = tsr_check_pointwise,
     .host = tsr_pointwise_run,
     .code = TSR_POINTWISE_CORRECTION},
    {.name = NULL},
};
