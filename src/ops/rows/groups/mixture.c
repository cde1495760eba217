#include "ops/kernels/mixture/combine.h"
#include "ops/kernels/mixture/experts.h"
#include "ops/kernels/mixture/experts_gradient.h"
#include "ops/rows/groups/mixture_checks.h"
#include "ops/rows/rows.h"

#define EXPERTS                                                                                                        \
    .attributes = {{.name = "activation", .kind = TSR_ATTRIBUTE_WORD, .words = "silu|gelu|gelu_tanh|relu"},            \
                   {.name = "capacity", .kind = TSR_ATTRIBUTE_INT},                                                    \
                   {.name = "overflow", .kind = TSR_ATTRIBUTE_WORD, .words = "fail|drop"},                             \
                   {.name = "beyond", .kind = TSR_ATTRIBUTE_WORD, .words = "fail|zero|identity"}},                     \
    .check = tsr_check_experts, .rule_of = tsr_rule_of_experts

#define COMBINES(row_code)                                                                                             \
    .results = {"out"}, .check = tsr_check_combine, .host = tsr_combine_run, .workspace_bytes = tsr_combine_bytes,     \
    .code = row_code

#define DTYPE .attributes = {{.name = "dtype", .kind = TSR_ATTRIBUTE_DTYPE}}

const tsr_op tsr_rows_mixture[] = {
    {.name = "experts",
     .rule = "t k, t s, e (u i) k, e h i -> t s h | k u whole | e sum positional | i sum",
     .operands = {"x", "ids", "gate_up", "down"},
     .results = {"y"},
     EXPERTS,
     .host = tsr_experts_run,
     .workspace_bytes = tsr_experts_bytes,
     .gradients = {"experts_gradient(dout, x, ids, gate_up, down).0", NULL,
                   "experts_gradient(dout, x, ids, gate_up, down).1",
                   "experts_gradient(dout, x, ids, gate_up, down).2"}},
    {.name = "combine",
     .rule = "t s h, t s -> t h | s sum | linear {0}{1}",
     .operands = {"y", "weights"},
     COMBINES(TSR_COMBINE),
     .gradients = {"combine_gradient_y(dout, weights, dtype=y)", "combine_gradient_weights(dout, y, dtype=weights)"}},
    /* Rows of which gradients are made. */
    {.name = "experts_gradient",
     .rule = "t s h, t k, t s, e (u i) k, e h i -> t k, e (u i) k, e h i | k u whole | t s h sum | e sum positional | "
             "i sum | linear {0}",
     .operands = {"dout", "x", "ids", "gate_up", "down"},
     .results = {"dx", "dgate_up", "ddown"},
     EXPERTS,
     .code = 1,
     .host = tsr_experts_gradient_run,
     .workspace_bytes = tsr_experts_gradient_bytes},
    {.name = "combine_gradient_y",
     .rule = "t h, t s -> t s h | linear {0}{1}",
     .operands = {"dout", "weights"},
     DTYPE,
     COMBINES(TSR_COMBINE_Y)},
    {.name = "combine_gradient_weights",
     .rule = "t h, t s h -> t s | h sum | linear {0}{1}",
     .operands = {"dout", "y"},
     DTYPE,
     COMBINES(TSR_COMBINE_WEIGHTS)},
    {.name = NULL},
};
