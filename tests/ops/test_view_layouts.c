/* The layouts of views: what stays where, and what is refused. */
#include "attribute_values.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* What an op makes of layouts. */
typedef struct layout_case {
    const char *op, *mesh, *placements;
    int ndim;
    int64_t shape[3];
    const char *result; /* or the end of the refusal's sentence, behind "!" */
    tsr_attribute attributes[4];
} layout_case;

#define SLICE(from, to, by)                                                                                            \
    {                                                                                                                  \
        INT("start", from), INT("end", to), INT("step", by)                                                            \
    }

static const layout_case layout_cases[] = {
    {"transpose", "2x3", "S(1),S(0;balanced)", 2, {7, 5}, "S(0),S(1;balanced)", {{NULL}}},
    {"transpose", "2", "S(1)", 3, {4, 6, 5}, "S(1)", {INT("dim0", 0), INT("dim1", -1)}},
    {"permute", "2x2", "S(0),S(2)", 3, {4, 6, 8}, "S(1),S(0)", {INTS("dims", 3, 2, 0, 1)}},
    {"expand", "2", "S(1)", 2, {1, 6}, "S(2)", {INTS("shape", 3, 4, 5, 6)}},
    {"expand", "2", "S(0)", 2, {1, 6}, "!redistribute x from \"S(0)\" to \"R\"", {INTS("shape", 2, 5, 6)}},
    {"squeeze", "2", "S(2)", 3, {1, 1, 6}, "S(0)", {INTS("dim", 0, 0)}},
    {"squeeze",
     "2",
     "S(1)",
     3,
     {4, 1, 6},
     "!which squeeze needs whole; redistribute x from \"S(1)\" to \"R\"",
     {INTS("dim", 1, 1)}},
    {"unsqueeze", "2", "S(0)", 2, {4, 6}, "S(1)", {INT("dim", 0)}},
    /* Reshapes: dims that are split or joined are cut along a factor. */
    {"reshape", "2", "S(0)", 2, {4, 6}, "S(0)", {INTS("shape", 1, 24)}},
    {"reshape", "2", "S(1)", 2, {4, 6}, "S(0;interleave=4)", {INTS("shape", 1, -1)}},
    {"reshape", "2x3", "S(0),S(1)", 2, {4, 6}, "S(0),S(0;interleave=2)", {INTS("shape", 1, 24)}},
    {"reshape", "4", "S(0;unit=6)", 1, {24}, "S(0)", {INTS("shape", 2, 4, 6)}},
    {"reshape", "4", "S(0)", 1, {24}, "S(0)", {INTS("shape", 2, 4, 6)}},
    {"reshape", "2", "S(0;interleave=4)", 1, {24}, "S(1)", {INTS("shape", 2, 4, 6)}},
    {"reshape", "4", "S(0)", 2, {6, 5}, "S(0;unit=5)", {INTS("shape", 1, 30)}},
    {"reshape", "2", "S(0)", 2, {4, 6}, "S(0)", {INTS("shape", 2, 8, 3)}},
    {"reshape", "3", "S(1)", 2, {4, 6}, "!redistribute x from \"S(1)\" to \"S(1;unit=3)\"", {INTS("shape", 2, 8, 3)}},
    {"reshape", "2", "S(0)", 2, {4, 6}, "!redistribute x from \"S(0)\" to \"R\"", {INTS("shape", 2, 6, 4)}},
    {"reshape", "2", "S(2)", 3, {4, 6, 5}, "S(2)", {INTS("shape", 3, 6, 4, 5)}},
    {"reshape", "2", "S(1)", 3, {1, 4, 6}, "S(0)", {INTS("shape", 4, 4, 1, 3, -1)}},
    {"reshape",
     "2",
     "S(0)",
     2,
     {1, 6},
     "!which reshape needs whole; redistribute x from \"S(0)\" to \"R\"",
     {INTS("shape", 1, 6)}},
    {"reshape", "2", "S(1)", 2, {0, 6}, "!redistribute x from \"S(1)\" to \"R\"", {INTS("shape", 2, 3, 0)}},
    {"reshape", "2", "P(avg)", 2, {4, 6}, "P(avg)", {INTS("shape", 1, 24)}},
    /* Slices of a dim that is cut: each rank keeps its elements. */
    {"slice", "4", "S(0)", 1, {8}, "S(0;sizes=1,2,2,1)", SLICE(1, 7, 1)},
    {"slice", "2", "S(0)", 1, {8}, "S(0)", SLICE(0, 8, 2)},
    {"slice", "2", "S(0)", 1, {8}, "S(0)", SLICE(1, 6, 1)},
    {"slice", "2", "S(0)", 1, {8}, "S(0)", SLICE(2, 6, 1)},
    {"slice", "4", "S(0)", 1, {9}, "S(0)", SLICE(0, 9, 3)},
    {"slice", "2", "S(0;unit=4)", 1, {16}, "S(0;unit=4)", SLICE(0, 12, 1)},
    {"slice", "2", "S(0;unit=4)", 1, {20}, "S(0;unit=3)", SLICE(0, 20, 1)},
    {"slice", "2", "S(0;interleave=3)", 1, {12}, "S(0;interleave=2)", SLICE(4, 12, 1)},
    {"slice", "2", "S(0;interleave=3)", 1, {12}, "S(0)", SLICE(4, 8, 1)},
    {"slice", "2", "S(0;blocks=32,16,16;unit=8)", 1, {64}, "S(0;blocks=32,16)", SLICE(0, 48, 1)},
    {"slice", "2", "S(0;interleave=2)", 1, {8}, "!redistribute x from \"S(0;interleave=2)\" to \"R\"", SLICE(1, 8, 1)},
    {"slice", "2x2", "S(0),S(0)", 1, {8}, "S(0),S(0)", SLICE(0, 8, 2)},
    {"slice", "2x2", "S(0),S(0)", 1, {8}, "!redistribute x from \"S(0),S(0)\" to \"R,S(0)\"", SLICE(1, 8, 1)},
    {"slice", "2x2", "S(0),S(1)", 2, {8, 6}, "S(0;sizes=3,4),S(1)", SLICE(1, 8, 1)},
    {"slice", "2", "P", 1, {8}, "P", SLICE(1, 8, 3)},
    {"slice", "2", "P(max)", 1, {8}, "P(max)", SLICE(1, 8, 3)},
    {"slice", "2", "P(prod)", 1, {8}, "!redistribute x from \"P(prod)\" to \"R\"", SLICE(1, 8, 3)},
    {"narrow", "2", "S(0;blocks=32,16,16)", 1, {64}, "S(0)", {INT("start", 32), INT("length", 16)}},
    {"narrow", "2", "S(0)", 1, {6}, "S(0;sizes=0,2)", {INT("start", 3), INT("length", 2)}},
    {"pad", "2", "S(0)", 1, {6}, "S(0;sizes=3,5)", {INT("after", 2)}},
    {"pad", "2", "S(0)", 1, {6}, "S(0)", {INT("before", 1), INT("after", 1)}},
    {"pad", "4", "S(0)", 1, {9}, "S(0)", {INT("after", 2)}},
    {"pad", "2", "P", 1, {6}, "P", {INT("after", 2)}},
    {"pad", "2", "P", 1, {6}, "!redistribute x from \"P\" to \"R\"", {INT("after", 2), FLOAT("value", 1)}},
    {"pad", "2", "P(max)", 1, {6}, "P(max)", {INT("after", 2), FLOAT("value", 1)}},
    {"flip", "2", "S(1)", 2, {6, 4}, "S(1)", {INTS("dim", 1, 0)}},
    {"flip", "2", "S(1)", 2, {6, 4}, "!redistribute x from \"S(1)\" to \"R\"", {INTS("dim", 0, 0)}},
    {"roll", "2", "S(0)", 1, {6}, "!redistribute x from \"S(0)\" to \"R\"", {INT("shift", 1)}},
    {"tril", "2x2", "S(0;balanced),S(1;interleave=2)", 2, {5, 8}, "S(0),S(1;interleave=2)", {{NULL}}},
    {NULL},
};

static void check_layout_case(const layout_case *line)
{
    const tsr_op *op;
    tsr_mesh *mesh;
    tsr_layout *x, *results[TSR_OP_MOST_RESULTS] = {NULL};
    char text[512];
    size_t count = 0;
    assert_int_equal(tsr_op_find(NULL, line->op, &op), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, NULL, line->mesh, &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, line->placements, line->ndim, line->shape, TSR_F32, &x), TSR_OK);
    while (count < 4 && line->attributes[count].name)
        count++;
    const tsr_status status = tsr_op_propagate(op, count, line->attributes, (const tsr_layout *const[]){x}, results);
    if (status == TSR_OK)
        tsr_layout_print(results[0], text, sizeof text);
    else
        snprintf(text, sizeof text, "%s", tsr_status_message());
    const char *const wanted = line->result[0] == '!' ? line->result + 1 : line->result;
    const size_t length = strlen(text), end = strlen(wanted);
    const bool same = line->result[0] != '!'
                          ? strcmp(text, wanted) == 0 && status == TSR_OK
                          : status != TSR_OK && length >= end && strcmp(text + length - end, wanted) == 0;
    if (!same)
        fail_msg("%s of %s on %s: expected %s, got %s", line->op, line->placements, line->mesh, line->result, text);
    tsr_layout_destroy(results[0]);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
}

/* Gradients of x, of which x's cuts of dims of size 1 must come back, on two ranks of which one has
 * no element. */
static void dims_of_size_1_keep_their_cuts_in_gradients(void **state)
{
    static const struct {
        const char *op, *placements;
        int ndim;
        int64_t shape[4];
        tsr_attribute dim;
    } cases[] = {{"squeeze", "S(0)", 3, {1, 1, 6}, INTS("dim", 1, 1)},
                 {"squeeze", "S(1)", 3, {1, 1, 6}, INTS("dim", 1, 0)},
                 {"squeeze", "S(2)", 4, {1, 6, 1, 1}, INTS("dim", 2, 0, 3)},
                 {"squeeze", "S(2)", 3, {1, 1, 6}, INTS("dim", 0, 0)},
                 {"unsqueeze", "S(0)", 2, {1, 6}, INT("dim", 0)},
                 {"unsqueeze", "S(0)", 2, {1, 6}, INT("dim", 1)},
                 {"unsqueeze", "S(1)", 2, {6, 1}, INT("dim", -1)},
                 {"unsqueeze", "S(1)", 3, {1, 1, 1}, INT("dim", 1)}};
    tsr_mesh *mesh;
    (void)state;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64];
        const tsr_op *op;
        const bool wanted = true;
        tsr_layout *x, *dout, *dx = NULL;
        assert_int_equal(tsr_op_find(NULL, cases[i].op, &op), TSR_OK);
        assert_int_equal(tsr_layout_parse(mesh, cases[i].placements, cases[i].ndim, cases[i].shape, TSR_F32, &x),
                         TSR_OK);
        const tsr_layout *const operands[] = {x};
        assert_int_equal(tsr_op_gradient_layout(op, 1, &cases[i].dim, operands, &dout), TSR_OK);
        if (tsr_op_propagate_gradients(op, 1, &cases[i].dim, operands, dout, &wanted, &dx) != TSR_OK)
            fail_msg("%s of %s: %s", cases[i].op, cases[i].placements, tsr_status_message());
        tsr_layout_print(dx, text, sizeof text);
        assert_string_equal(text, cases[i].placements);
        assert_int_equal(tsr_layout_ndim(dx), cases[i].ndim);
        assert_memory_equal(tsr_layout_shape(dx), cases[i].shape, (size_t)cases[i].ndim * sizeof(int64_t));
        tsr_layout_destroy(dx);
        tsr_layout_destroy(dout);
        tsr_layout_destroy(x);
    }
    tsr_mesh_destroy(mesh);
}

static void placements_say_where_elements_stay(void **state)
{
    (void)state;
    for (const layout_case *line = layout_cases; line->op; line++)
        check_layout_case(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(placements_say_where_elements_stay),
                                       cmocka_unit_test(dims_of_size_1_keep_their_cuts_in_gradients)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
