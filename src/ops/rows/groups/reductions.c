#include "ops/kernels/lines/extreme.h"
#include "ops/kernels/lines/moments.h"
#include "ops/kernels/lines/share.h"
#include "ops/kernels/reduce.h"
#include "ops/rows/along.h"
#include "ops/rows/checks.h"
#include "ops/rows/rows.h"

#define RESULT .results = {"out"}

#define DIM_AND_KEEP                                                                                                   \
    .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INTS}, {.name = "keep", .kind = TSR_ATTRIBUTE_INT}}

/* A reduction over the dims that `dim` lists, or what brings its gradient back. */
#define OVER_DIMS(what, loop)                                                                                          \
    RESULT, DIM_AND_KEEP, .check = tsr_check_##what, .rule_of = tsr_rule_of_##what, .host = tsr_reduce_##loop

/* The gradient of a reduction that chooses or multiplies. */
#define SHARES                                                                                                         \
    RESULT, DIM_AND_KEEP, .check = tsr_check_shares, .rule_of = tsr_rule_of_spread, .host = tsr_share_run,             \
                          .exchanges = 1, .record_bytes = tsr_share_record_bytes,                                      \
                          .workspace_bytes = tsr_share_workspace_bytes

/* Variances, and their gradients. */
#define MOMENTS(checked, ruled)                                                                                        \
    RESULT,                                                                                                            \
        .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INTS},                                                    \
                       {.name = "keep", .kind = TSR_ATTRIBUTE_INT},                                                    \
                       {.name = "correction", .kind = TSR_ATTRIBUTE_FLOAT, .number = 1}},                              \
        .check = tsr_##checked, .rule_of = tsr_##ruled, .host = tsr_moments_run, .exchanges = 1,                       \
        .record_bytes = tsr_moments_record_bytes, .workspace_bytes = tsr_moments_workspace_bytes

/* The index of an extreme along the dim that `dim` names. */
#define ALONG_DIM                                                                                                      \
    RESULT, .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INT, .integer = -1}}, .check = tsr_check_position,    \
            .rule_of = tsr_rule_along, .host = tsr_extreme_run, .exchanges = 1,                                        \
            .record_bytes = tsr_extreme_record_bytes, .workspace_bytes = tsr_extreme_workspace_bytes

const tsr_op tsr_rows_reductions[] = {
    {.name = "sum",
     .rule = "... v ... -> ... ... | v sum | linear {0}",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_SUM,
     .gradients = {"spread(dout, like x)"}},
    {.name = "mean",
     .rule = "... v ... -> ... ... | v mean | linear {0}",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_MEAN,
     .gradients = {"spread_mean(dout, like x)"}},
    {.name = "max",
     .rule = "... v ... -> ... ... | v max | monotone {0}",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_MAX,
     .gradients = {"max_gradient(dout, x)"}},
    {.name = "min",
     .rule = "... v ... -> ... ... | v min | monotone {0}",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_MIN,
     .gradients = {"min_gradient(dout, x)"}},
    {.name = "prod",
     .rule = "... v ... -> ... ... | v prod",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_PROD,
     .gradients = {"prod_gradient(dout, x)"}},
    {.name = "any",
     .rule = "... v ... -> ... ... | v max | monotone {0}",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_ANY},
    {.name = "all",
     .rule = "... v ... -> ... ... | v min | monotone {0}",
     .operands = {"x"},
     OVER_DIMS(sum, run),
     .code = TSR_REDUCE_ALL},
    {.name = "sum_squares",
     .rule = "... v ..., -> ... ... | v sum",
     .operands = {"x", "scale"},
     .optional = 1u << 1,
     RESULT,
     DIM_AND_KEEP,
     .check = tsr_check_squares,
     .rule_of = tsr_rule_of_sum,
     .host = tsr_reduce_run,
     .code = TSR_REDUCE_SQUARES},
    {.name = "all_finite",
     .rule = "... v ... -> ... ... | v min",
     .operands = {"x"},
     RESULT,
     DIM_AND_KEEP,
     .check = tsr_check_squares,
     .rule_of = tsr_rule_of_sum,
     .host = tsr_reduce_run,
     .code = TSR_REDUCE_FINITE},
    {.name = "argmax",
     .rule = "... v ... -> ... ... | v exchange positional",
     .operands = {"x"},
     ALONG_DIM,
     .code = TSR_EXTREME_LARGEST},
    {.name = "argmin",
     .rule = "... v ... -> ... ... | v exchange positional",
     .operands = {"x"},
     ALONG_DIM,
     .code = TSR_EXTREME_SMALLEST},
    {.name = "var",
     .rule = "... v ... -> ... ... | v exchange",
     .operands = {"x"},
     MOMENTS(check_moments, rule_of_sum),
     .code = TSR_MOMENTS_VAR,
     .gradients = {"var_gradient(dout, x)"}},
    {.name = "std",
     .rule = "... v ... -> ... ... | v exchange",
     .operands = {"x"},
     MOMENTS(check_moments, rule_of_sum),
     .code = TSR_MOMENTS_STD,
     .gradients = {"std_gradient(dout, x)"}},
    /* Rows of which gradients are made. */
    {.name = "sum_to",
     .rule = "v ... -> ... | v sum | linear {0}",
     .operands = {"x"},
     RESULT,
     .attributes = {{.name = "shape", .kind = TSR_ATTRIBUTE_INTS}},
     .check = tsr_check_sum_to,
     .rule_of = tsr_rule_of_sum_to,
     .host = tsr_reduce_sum_to,
     .code = 0},
    {.name = "spread",
     .rule = "... ..., ... v ... -> ... v ... | linear {0}",
     .operands = {"x", "like"},
     OVER_DIMS(spread, spread),
     .code = TSR_REDUCE_SUM},
    {.name = "spread_mean",
     .rule = "... ..., ... v ... -> ... v ... | linear {0}",
     .operands = {"x", "like"},
     OVER_DIMS(spread, spread),
     .code = TSR_REDUCE_MEAN},
    {.name = "max_gradient",
     .rule = "... ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "x"},
     SHARES,
     .code = TSR_REDUCE_MAX},
    {.name = "min_gradient",
     .rule = "... ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "x"},
     SHARES,
     .code = TSR_REDUCE_MIN},
    {.name = "prod_gradient",
     .rule = "... ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "x"},
     SHARES,
     .code = TSR_REDUCE_PROD},
    {.name = "var_gradient",
     .rule = "... ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "x"},
     MOMENTS(check_shares, rule_of_spread),
     .code = TSR_MOMENTS_VAR_GRADIENT},
    {.name = "std_gradient",
     .rule = "... ..., ... v ... -> ... v ... | v exchange | linear {0}",
     .operands = {"dout", "x"},
     MOMENTS(check_shares, rule_of_spread),
     .code = TSR_MOMENTS_STD_GRADIENT},
    {.name = NULL},
};
