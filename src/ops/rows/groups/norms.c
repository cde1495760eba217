#include "ops/kernels/norms/norms.h"

#include "ops/rows/groups/norms_checks.h"
#include "ops/rows/rows.h"

#define RESULT .results = {"out"}

/* Rows of one kernel, which meet once. */
#define KERNEL(which)                                                                                                  \
    .host = tsr_norm_run, .code = TSR_NORM_##which, .exchanges = 1, .record_bytes = tsr_norm_record_bytes,             \
    .workspace_bytes = tsr_norm_workspace_bytes

/* An op along the dim that `dim` names. */
#define ALONG_DIM(which)                                                                                               \
    RESULT, .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INT, .integer = -1}}, .check = tsr_check_softmax,     \
            .rule_of = tsr_rule_of_softmax, KERNEL(which)

#define DIMS                                                                                                           \
    {.name = "dim", .kind = TSR_ATTRIBUTE_INTS},                                                                       \
    {                                                                                                                  \
        .name = "keep", .kind = TSR_ATTRIBUTE_INT                                                                      \
    }
#define POWER                                                                                                          \
    {                                                                                                                  \
        .name = "p", .kind = TSR_ATTRIBUTE_FLOAT, .number = 2                                                          \
    }

/* An op along the last `dims` dims. */
#define ALONG_LAST(epsilon)                                                                                            \
    .attributes = {{.name = "epsilon", .kind = TSR_ATTRIBUTE_FLOAT, .number = (epsilon)},                              \
                   {.name = "dims", .kind = TSR_ATTRIBUTE_INT, .integer = 1}},                                         \
    .check = tsr_check_normalized

const tsr_op tsr_rows_norms[] = {
    {.name = "softmax",
     .rule = "... v ... -> ... v ... | v exchange",
     .operands = {"x"},
     ALONG_DIM(SOFTMAX),
     .gradients = {"softmax_gradient(dout, softmax(x))"}},
    {.name = "log_softmax",
     .rule = "... v ... -> ... v ... | v exchange",
     .operands = {"x"},
     ALONG_DIM(LOG_SOFTMAX),
     .gradients = {"log_softmax_gradient(dout, log_softmax(x))"}},
    {.name = "logsumexp",
     .rule = "... v ... -> ... ... | v exchange",
     .operands = {"x"},
     RESULT,
     .attributes = {DIMS},
     .check = tsr_check_norm,
     .rule_of = tsr_rule_of_norm,
     KERNEL(LOGSUMEXP),
     .gradients = {"mul(exp(sub(x, spread(logsumexp(x), like x))), spread(dout, like x))"}},
    {.name = "norm",
     .rule = "... v ... -> ... ... | v exchange",
     .operands = {"x"},
     RESULT,
     .attributes = {DIMS, POWER},
     .check = tsr_check_norm,
     .rule_of = tsr_rule_of_norm,
     KERNEL(ONE),
     .gradients = {"norm_gradient(dout, x, norm(x))"}},
    {.name = "rms_norm",
     .rule = "... h, h -> ... h | h exchange | linear {1}",
     .operands = {"x", "weight"},
     RESULT,
     .optional = 1u << 1,
     ALONG_LAST(1e-6),
     .rule_of = tsr_rule_of_normalized,
     KERNEL(RMS),
     .gradients = {"rms_norm_gradient(dout, x, weight).0", "rms_norm_gradient(dout, x, weight).1"}},
    {.name = "layer_norm",
     .rule = "... h, h, h -> ... h | h exchange | linear {1 2}",
     .operands = {"x", "weight", "bias"},
     RESULT,
     .optional = 1u << 1 | 1u << 2,
     ALONG_LAST(1e-5),
     .rule_of = tsr_rule_of_normalized,
     KERNEL(LAYER),
     .gradients = {"layer_norm_gradient(dout, x, weight).0", "layer_norm_gradient(dout, x, weight).1",
                   "layer_norm_gradient(dout, x, weight).2"}},
    /* Rows of which gradients are made. */
    {.name = "softmax_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "out"},
     ALONG_DIM(SOFTMAX_GRADIENT)},
    {.name = "log_softmax_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "out"},
     ALONG_DIM(LOG_SOFTMAX_GRADIENT)},
    {.name = "norm_gradient",
     .rule = "... ..., ... v ..., ... ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "x", "out"},
     RESULT,
     .attributes = {DIMS, POWER},
     .check = tsr_check_norm,
     .rule_of = tsr_rule_of_norm_gradient,
     KERNEL(ONE_GRADIENT)},
    {.name = "rms_norm_gradient",
     .rule = "... h, ... h, h -> ... h, h | h exchange | ... sum | linear {0}{2}",
     .operands = {"dout", "x", "weight"},
     .results = {"dx", "dweight"},
     .optional = 1u << 2,
     ALONG_LAST(1e-6),
     .rule_of = tsr_rule_of_normalized_gradient,
     KERNEL(RMS_GRADIENT)},
    {.name = "layer_norm_gradient",
     .rule = "... h, ... h, h -> ... h, h, h | h exchange | ... sum | linear {0}{2}",
     .operands = {"dout", "x", "weight"},
     .results = {"dx", "dweight", "dbias"},
     .optional = 1u << 2,
     ALONG_LAST(1e-5),
     .rule_of = tsr_rule_of_normalized_gradient,
     KERNEL(LAYER_GRADIENT)},
    {.name = NULL},
};
