#include "ops/kernels/lines/order.h"

#include "ops/kernels/lines/cumulate.h"
#include "ops/kernels/lines/place.h"
#include "ops/rows/along.h"
#include "ops/rows/groups/order_checks.h"
#include "ops/rows/rows.h"

/* Rows share these parts. */
#define DIM                                                                                                            \
    {                                                                                                                  \
        .name = "dim", .kind = TSR_ATTRIBUTE_INT, .integer = -1                                                        \
    }
#define INTEGER(which)                                                                                                 \
    {                                                                                                                  \
        .name = which, .kind = TSR_ATTRIBUTE_INT                                                                       \
    }
#define EXCHANGES(kernel)                                                                                              \
    .rule_of = tsr_rule_along, .host = tsr_##kernel##_run, .exchanges = 1,                                             \
    .record_bytes = tsr_##kernel##_record_bytes, .workspace_bytes = tsr_##kernel##_workspace_bytes

const tsr_op tsr_rows_order[] = {
    {.name = "sort",
     .rule = "... n ... -> ... n ..., ... n ... | n exchange positional",
     .operands = {"x"},
     .results = {"values", "indices"},
     .attributes = {DIM, INTEGER("descending")},
     .check = tsr_check_sorted,
     EXCHANGES(order),
     .code = TSR_ORDER_SORT,
     .gradients = {"sort_gradient(dout, sort(x).1)"}},
    {.name = "topk",
     .rule = "... n ... -> ... k ..., ... k ... | n exchange positional | k whole",
     .operands = {"x"},
     .results = {"values", "indices"},
     .attributes = {DIM, {.name = "k", .kind = TSR_ATTRIBUTE_INT, .integer = 1}},
     .check = tsr_check_sorted,
     .shape_of = tsr_shape_of_topk,
     EXCHANGES(order),
     .code = TSR_ORDER_TOP,
     .gradients = {"topk_gradient(dout, topk(x).1, like x)"}},
    {.name = "cumsum",
     .rule = "... n ... -> ... n ... | n exchange positional | linear {0}",
     .operands = {"x"},
     .results = {"out"},
     .attributes = {DIM},
     .check = tsr_check_cumulative,
     EXCHANGES(cumulate),
     .code = 0,
     .gradients = {"cumsum_reverse(dout)"}},
    /* Rows of which gradients are made. */
    {.name = "cumsum_reverse",
     .rule = "... n ... -> ... n ... | n exchange positional | linear {0}",
     .operands = {"x"},
     .results = {"out"},
     .attributes = {DIM},
     .check = tsr_check_cumulative,
     EXCHANGES(cumulate),
     .code = 1,
     .gradients = {"cumsum(dout)"}},
    {.name = "sort_gradient",
     .rule = "... n ..., ... n ... -> ... n ... | n exchange positional | linear {0}",
     .operands = {"dout", "indices"},
     .results = {"out"},
     .attributes = {DIM},
     .check = tsr_check_placed,
     EXCHANGES(place)},
    {.name = "topk_gradient",
     .rule = "... k ..., ... k ..., ... n ... -> ... n ... | k whole | n positional | linear {0}",
     .operands = {"dout", "indices", "like"},
     .results = {"out"},
     .attributes = {DIM},
     .check = tsr_check_placed,
     .rule_of = tsr_rule_along,
     .host = tsr_place_run,
     .workspace_bytes = tsr_place_workspace_bytes},
    {.name = NULL},
};
