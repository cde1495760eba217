#include "ops/kernels/attention/attention.h"

#include "ops/kernels/attention/rope.h"
#include "ops/rows/groups/attention_checks.h"
#include "ops/rows/rows.h"

#define ATTENTION_ATTRIBUTES                                                                                           \
    .attributes = {{.name = "causal", .kind = TSR_ATTRIBUTE_INT},                                                      \
                   {.name = "scale", .kind = TSR_ATTRIBUTE_FLOAT},                                                     \
                   {.name = "window", .kind = TSR_ATTRIBUTE_INT}}

#define ROPE(row_code)                                                                                                 \
    .results = {"out"}, .rule = "... t h d, ... t -> ... t h d | d whole | linear {0}",                                \
    .attributes = {{.name = "base", .kind = TSR_ATTRIBUTE_FLOAT, .number = 10000},                                     \
                   {.name = "factor", .kind = TSR_ATTRIBUTE_FLOAT, .number = 1},                                       \
                   {.name = "low_freq_factor", .kind = TSR_ATTRIBUTE_FLOAT, .number = 1},                              \
                   {.name = "high_freq_factor", .kind = TSR_ATTRIBUTE_FLOAT, .number = 4},                             \
                   {.name = "original_max_position", .kind = TSR_ATTRIBUTE_INT}},                                      \
    .check = tsr_check_rope, .host = tsr_rope_run, .workspace_bytes = tsr_rope_workspace, .code = row_code

const tsr_op tsr_rows_attention[] = {
    {.name = "attention",
     .rule = "... (h g) q d, ... h t d, ... h t e, ... (h g) q t -> ... (h g) q e | d whole | t exchange positional | "
             "q positional "
             "| (h g) positional",
     .operands = {"q", "k", "v", "mask"},
     .optional = 0x8,
     .results = {"out"},
     ATTENTION_ATTRIBUTES,
     .check = tsr_check_attention,
     .rule_of = tsr_rule_of_attention,
     .host = tsr_attention_run,
     .exchanges = 1,
     .record_bytes = tsr_attention_record,
     .workspace_bytes = tsr_attention_workspace,
     .gradients = {"attention_gradient(dout, q, k, v, mask).0", "attention_gradient(dout, q, k, v, mask).1",
                   "attention_gradient(dout, q, k, v, mask).2"}},
    {.name = "rope", .operands = {"x", "positions"}, ROPE(0), .gradients = {"rope_gradient(dout, positions)"}},
    /* Rows of which gradients are made. */
    {.name = "attention_gradient",
     .rule = "... (h g) q e, ... (h g) q d, ... h t d, ... h t e, ... (h g) q t -> ... (h g) q d, ... h t d, ... h t e "
             "| d whole "
             "| q sum positional | g e sum | t exchange sum positional | (h g) positional | linear {0}",
     .operands = {"dout", "q", "k", "v", "mask"},
     .optional = 0x10,
     .results = {"dq", "dk", "dv"},
     ATTENTION_ATTRIBUTES,
     .check = tsr_check_attention,
     .rule_of = tsr_rule_of_attention,
     .code = 1,
     .host = tsr_attention_gradient_run,
     .exchanges = 1,
     .record_bytes = tsr_attention_gradient_record,
     .workspace_bytes = tsr_attention_gradient_workspace},
    {.name = "rope_gradient", .operands = {"dout", "positions"}, ROPE(1), .gradients = {"rope(dout, positions)"}},
    {.name = NULL},
};
