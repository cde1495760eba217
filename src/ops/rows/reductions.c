#include "ops/kernels/reduce.h"
#include "ops/rows/checks.h"
#include "ops/rows/rows.h"

#define RESULT .results = {"out"}

/* A sum over the dims that `dim` lists, or what brings its gradient back; `code` 1: it divides. */
#define OVER_DIMS(what)                                                                                                \
    RESULT, .attributes = {{.name = "dim", .kind = TSR_ATTRIBUTE_INTS}, {.name = "keep", .kind = TSR_ATTRIBUTE_INT}},  \
            .check = tsr_check_##what, .rule_of = tsr_rule_of_##what, .host = tsr_reduce_##what

const tsr_op tsr_rows_reductions[] = {
    {.name = "sum",
     .rule = "... v ... -> ... ... | v sum | linear {0}",
     .operands = {"x"},
     OVER_DIMS(sum),
     .code = 0,
     .gradients = {"spread(dout, like x)"}},
    {.name = "mean",
     .rule = "... v ... -> ... ... | v mean | linear {0}",
     .operands = {"x"},
     OVER_DIMS(sum),
     .code = 1,
     .gradients = {"spread_mean(dout, like x)"}},
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
     OVER_DIMS(spread),
     .code = 0},
    {.name = "spread_mean",
     .rule = "... ..., ... v ... -> ... v ... | linear {0}",
     .operands = {"x", "like"},
     OVER_DIMS(spread),
     .code = 1},
    {.name = NULL},
};
