#include "ops/rows/rows.h"

#include "ops/kernels/views.h"
#include "ops/rows/views_checks.h"

/* Rows share these parts. */
#define RESULT(op)                                                                                                     \
    .results = {"out"}, .host = tsr_view_copy, .workspace_bytes = tsr_view_workspace, .code = TSR_VIEW_##op
#define INT(attribute, value)                                                                                          \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_INT, .integer = value                                                 \
    }
#define INTS(attribute)                                                                                                \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_INTS                                                                  \
    }

/* Another order of dims; one of the values of a tensor. */
#define ORDERS(op) RESULT(op), .check = tsr_check_order, .rule_of = tsr_rule_of_order, .view = tsr_view_make

/* A range of a dim. */
#define RANGE(op)                                                                                                      \
    RESULT(op), .check = tsr_check_range, .rule_of = tsr_rule_of_permuted, .shape_of = tsr_shape_of_range,             \
                .place_of = tsr_place_of_range

const tsr_op tsr_rows_views[] = {
    {.name = "transpose",
     .rule = "... a ... b ... -> ... b ... a ... | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INT("dim0", 0), INT("dim1", 1)},
     ORDERS(TRANSPOSE),
     .gradients = {"transpose(dout)"}},
    {.name = "permute",
     .rule = "a b ... -> ... b a | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INTS("dims")},
     ORDERS(PERMUTE),
     .gradients = {"permute_back(dout)"}},
    {.name = "expand",
     .rule = "1 ... -> n ... | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(EXPAND),
     .attributes = {INTS("shape")},
     .check = tsr_check_expand,
     .rule_of = tsr_rule_of_expand,
     .shape_of = tsr_shape_of_expand,
     .view = tsr_view_make,
     .gradients = {"dout"}},
    {.name = "squeeze",
     .rule = "... v ... -> ... ... | v whole | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(RESHAPE),
     .attributes = {INTS("dim")},
     .check = tsr_check_squeeze,
     .rule_of = tsr_rule_of_squeeze,
     .view = tsr_view_make,
     .gradients = {"unsqueeze_like(dout, like x)"}},
    {.name = "unsqueeze",
     .rule = "... ... -> ... 1 ... | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(RESHAPE),
     .attributes = {INT("dim", 0)},
     .check = tsr_check_unsqueeze,
     .rule_of = tsr_rule_of_unsqueeze,
     .view = tsr_view_make,
     .gradients = {"squeeze_like(dout, like x)"}},
    {.name = "slice",
     .rule = "... d ... -> ... d ... | d permute | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INT("dim", 0), INT("start", 0), INT("end", INT64_MAX), INT("step", 1)},
     RANGE(SLICE),
     .view = tsr_view_make,
     .gradients = {"slice_gradient(dout, like x)"}},
    {.name = "narrow",
     .rule = "... d ... -> ... d ... | d permute | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INT("dim", 0), INT("start", 0), INT("length", 0)},
     RANGE(NARROW),
     .view = tsr_view_make,
     .gradients = {"narrow_gradient(dout, like x)"}},
    {.name = "concat",
     .rule = "... d ..., ... d ... -> ... d ... | d permute | linear {0 1 2 3 4 5 6 7} | monotone {0}{1}{2}{3}",
     .operands = {"x", "y", "x2", "x3", "x4", "x5", "x6", "x7"},
     .optional = 0xfc,
     RESULT(CONCAT),
     .attributes = {INT("dim", 0)},
     .check = tsr_check_concat,
     .rule_of = tsr_rule_of_permuted,
     .shape_of = tsr_shape_of_concat,
     .place_of = tsr_place_of_concat,
     .gradients = {"slice_like(dout, like x)"}},
    {.name = NULL},
};
