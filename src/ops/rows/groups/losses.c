#include "ops/kernels/losses/linear_losses.h"
#include "ops/rows/groups/losses_checks.h"
#include "ops/rows/rows.h"

/* What the rows of losses share; ignore_index is PyTorch's default. */
#define LOSS(row_code, kernel, workspace)                                                                              \
    .attributes = {{.name = "reduction", .kind = TSR_ATTRIBUTE_WORD, .words = "mean|sum|none"},                        \
                   {.name = "ignore_index", .kind = TSR_ATTRIBUTE_INT, .integer = -100},                               \
                   {.name = "label_smoothing", .kind = TSR_ATTRIBUTE_FLOAT}},                                          \
    .check = tsr_check_loss, .rule_of = tsr_rule_of_loss, .host = kernel, .code = row_code,                            \
    .exchanges = TSR_LOSS_EXCHANGES, .record_bytes = tsr_loss_record_bytes, .meets = tsr_loss_meets,                   \
    .workspace_bytes = workspace

const tsr_op tsr_rows_losses[] = {
    {.name = "cross_entropy",
     .rule = "... v, ... -> ... | v exchange positional",
     .operands = {"logits", "targets"},
     .results = {"out"},
     LOSS(TSR_CROSS_ENTROPY, tsr_cross_entropy_run, tsr_loss_workspace_bytes),
     .gradients = {"cross_entropy_gradient(dout, logits, targets)"}},
    {.name = "linear_cross_entropy",
     .rule = "... k, v k, ... -> ... | k whole | v exchange positional",
     .operands = {"x", "w", "targets"},
     .results = {"out"},
     LOSS(TSR_LINEAR_CROSS_ENTROPY, tsr_linear_cross_entropy_run, tsr_linear_loss_workspace_bytes),
     .gradients = {"linear_cross_entropy_gradient(dout, x, w, targets).0",
                   "linear_cross_entropy_gradient(dout, x, w, targets).1"}},
    /* Rows of which gradients are made. */
    {.name = "cross_entropy_gradient",
     .rule = "..., ... v, ... -> ... v | v exchange positional | linear {0}",
     .operands = {"dout", "logits", "targets"},
     .results = {"out"},
     LOSS(TSR_CROSS_ENTROPY_GRADIENT, tsr_cross_entropy_gradient_run, tsr_loss_workspace_bytes)},
    {.name = "linear_cross_entropy_gradient",
     .rule = "..., ... k, v k, ... -> ... k, v k | ... sum | k whole | v sum exchange positional | linear {0}",
     .operands = {"dout", "x", "w", "targets"},
     .results = {"dx", "dw"},
     LOSS(TSR_LINEAR_CROSS_ENTROPY_GRADIENT, tsr_linear_cross_entropy_gradient_run, tsr_linear_loss_workspace_bytes)},
    {.name = NULL},
};
