#include "ops/kernels/views.h"

#include "ops/rows/groups/ranges.h"
#include "ops/rows/groups/views_checks.h"
#include "ops/rows/reshape.h"
#include "ops/rows/rows.h"

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

#define RESHAPES                                                                                                       \
    RESULT(RESHAPE), .check = tsr_check_reshape, .rule_of = tsr_rule_of_reshape, .shape_of = tsr_shape_of_reshape,     \
                     .view = tsr_view_make
#define ROLLS .attributes = {INT("dim", 0), INT("shift", 0)}, .check = tsr_check_roll, .rule_of = tsr_rule_of_roll

/* The gradients of concat's operands, as parts of `d`: each is the first part of what is behind
 * those before it. */
#define PART(d, x) "slice_like(" d ", like " x ")"
#define REST(d, x) "rest(" d ", like " x ")"
#define REST_1(d)  REST(d, "x")
#define REST_2(d)  REST(REST_1(d), "y")
#define REST_3(d)  REST(REST_2(d), "z")
#define REST_4(d)  REST(REST_3(d), "x4")
#define REST_5(d)  REST(REST_4(d), "x5")
#define REST_6(d)  REST(REST_5(d), "x6")
#define REST_7(d)  REST(REST_6(d), "x7")

const tsr_op tsr_rows_views[] = {
    {.name = "reshape",
     .rule = "v (w x) ... -> (v w) x ... | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INTS("shape")},
     RESHAPES,
     .gradients = {"reshape_like(dout, like x)"}},
    {.name = "transpose",
     .rule = "... v ... w ... -> ... w ... v ... | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INT("dim0", 0), INT("dim1", 1)},
     ORDERS(TRANSPOSE),
     .gradients = {"transpose(dout)"}},
    {.name = "permute",
     .rule = "v w ... -> ... w v | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INTS("dims")},
     ORDERS(PERMUTE),
     .gradients = {"permute_back(dout)"}},
    {.name = "expand",
     .rule = "1 ... -> v ... | linear {0} | monotone {0}",
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
     .gradients = {"squeeze_back(dout, like x)"}},
    {.name = "unsqueeze",
     .rule = "v ... -> v 1 ... | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(RESHAPE),
     .attributes = {INT("dim", 0)},
     .check = tsr_check_unsqueeze,
     .rule_of = tsr_rule_of_unsqueeze,
     .view = tsr_view_make,
     .gradients = {"unsqueeze_back(dout)"}},
    {.name = "slice",
     .rule = "... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INT("dim", 0), INT("start", 0), INT("end", INT64_MAX), INT("step", 1)},
     RANGE(SLICE),
     .view = tsr_view_make,
     .gradients = {"slice_gradient(dout, like x)"}},
    {.name = "narrow",
     .rule = "... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INT("dim", 0), INT("start", 0), INT("length", 0)},
     RANGE(NARROW),
     .view = tsr_view_make,
     .gradients = {"narrow_gradient(dout, like x)"}},
    {.name = "concat",
     .rule =
         "... v ..., ... v ... -> ... v ... | v permute | linear {0 1 2 3 4 5 6 7} | monotone {0}{1}{2}{3}{4}{5}{6}{7}",
     .operands = {"x", "y", "z", "x4", "x5", "x6", "x7", "x8"},
     .optional = 0xfe,
     RESULT(CONCAT),
     .attributes = {INT("dim", 0)},
     .check = tsr_check_concat,
     .rule_of = tsr_rule_of_permuted,
     .shape_of = tsr_shape_of_concat,
     .place_of = tsr_place_of_concat,
     .gradients = {PART("dout", "x"), PART(REST_1("dout"), "y"), PART(REST_2("dout"), "z"), PART(REST_3("dout"), "x4"),
                   PART(REST_4("dout"), "x5"), PART(REST_5("dout"), "x6"), PART(REST_6("dout"), "x7"),
                   PART(REST_7("dout"), "x8")}},
    {.name = "pad",
     .rule = "... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(PAD),
     .attributes = {INT("dim", 0), INT("before", 0), INT("after", 0), {.name = "value", .kind = TSR_ATTRIBUTE_FLOAT}},
     .check = tsr_check_pad,
     .rule_of = tsr_rule_of_pad,
     .shape_of = tsr_shape_of_pad,
     .place_of = tsr_place_of_pad,
     .gradients = {"pad_gradient(dout, like x)"}},
    {.name = "flip",
     .rule = "... v ... -> ... v ... | v whole | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(FLIP),
     .attributes = {INTS("dim")},
     .check = tsr_check_flip,
     .rule_of = tsr_rule_of_flip,
     .gradients = {"flip(dout)"}},
    {.name = "roll",
     .rule = "... v ... -> ... v ... | v whole | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(ROLL),
     ROLLS,
     .gradients = {"roll_back(dout)"}},
    {.name = "tril",
     .rule = "... m n -> ... m n | m n positional | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(TRIL),
     .attributes = {INT("diagonal", 0)},
     .check = tsr_check_mask,
     .gradients = {"tril(dout)"}},
    {.name = "triu",
     .rule = "... m n -> ... m n | m n positional | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(TRIU),
     .attributes = {INT("diagonal", 0)},
     .check = tsr_check_mask,
     .gradients = {"triu(dout)"}},
    /* Rows of which gradients are made. */
    {.name = "reshape_like",
     .rule = "(v w) x ..., v (w x) ... -> v (w x) ... | linear {0} | monotone {0}",
     .operands = {"x", "like"},
     RESHAPES},
    {.name = "squeeze_back",
     .rule = "... ..., ... 1 ... -> ... 1 ... | linear {0} | monotone {0}",
     .operands = {"dout", "like"},
     RESULT(RESHAPE),
     .attributes = {INTS("dim")},
     .check = tsr_check_squeeze_back,
     .rule_of = tsr_rule_of_squeeze_back,
     .view = tsr_view_make},
    {.name = "unsqueeze_back",
     .rule = "... v ... -> ... ... | v whole | linear {0} | monotone {0}",
     .operands = {"dout"},
     RESULT(RESHAPE),
     .attributes = {INT("dim", 0)},
     .check = tsr_check_unsqueeze_back,
     .rule_of = tsr_rule_of_unsqueeze_back,
     .view = tsr_view_make},
    {.name = "permute_back",
     .rule = "... w v -> v w ... | linear {0} | monotone {0}",
     .operands = {"x"},
     .attributes = {INTS("dims")},
     ORDERS(PERMUTE_BACK),
     .gradients = {"permute(dout)"}},
    {.name = "roll_back",
     .rule = "... v ... -> ... v ... | v whole | linear {0} | monotone {0}",
     .operands = {"x"},
     RESULT(ROLL_BACK),
     ROLLS,
     .gradients = {"roll(dout)"}},
    {.name = "slice_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"dout", "like"},
     .attributes = {INT("dim", 0), INT("start", 0), INT("end", INT64_MAX), INT("step", 1)},
     RANGE(SLICE_GRADIENT)},
    {.name = "narrow_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"dout", "like"},
     .attributes = {INT("dim", 0), INT("start", 0), INT("length", 0)},
     RANGE(NARROW_GRADIENT)},
    /* The part of x that has the shape of `like` along dim, from `start` on, in its cuts. */
    {.name = "slice_like",
     .rule = "... v ..., ... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"x", "like"},
     .attributes = {INT("dim", 0), INT("start", 0)},
     RANGE(SLICE_LIKE),
     .view = tsr_view_make},
    {.name = "pad_gradient",
     .rule = "... v ..., ... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"x", "like"},
     .attributes = {INT("dim", 0), INT("before", 0)},
     RANGE(SLICE_LIKE),
     .view = tsr_view_make},
    /* The part of x behind the length of `like` along dim. */
    {.name = "rest",
     .rule = "... v ..., ... v ... -> ... v ... | v permute | linear {0} | monotone {0}",
     .operands = {"x", "like"},
     .optional = 2,
     .attributes = {INT("dim", 0)},
     RANGE(REST),
     .view = tsr_view_make},
    {.name = NULL},
};
