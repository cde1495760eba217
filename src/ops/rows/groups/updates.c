#include "ops/kernels/updates/updates.h"

#include "ops/kernels/pointwise.h"
#include "ops/rows/checks.h"
#include "ops/rows/groups/updates_checks.h"
#include "ops/rows/rows.h"

/* Updates of optimizers, which tsr_optimizer_update() records. Weight, gradient and states lie
 * alike; numbers are whole on all ranks. They have no gradients: an update ends a step. */
#define UPDATE(loop) .check = tsr_check_update, .host = tsr_update_run, .code = TSR_UPDATE_##loop

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
