/* The placement rule of linear layers: layouts in, and a layout or an error message out. Nothing
 * communicates. */
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TEXT 128

#define WITHOUT_FSDP                                                                                                   \
    "tsr_linear_propagate: x is data-parallel on mesh dim dp, which cuts its dim 0, so w must be Replicate on mesh "   \
    "dim dp, not cut there as FSDP stores it; "

/* x is `x_shape` (0-ended), w (8, last of x_shape), b (8). `b` is NULL without bias. */
typedef struct propagation {
    const char *mesh;
    int64_t x_shape[4];
    const char *x, *w, *b;
    const char *expected; /* y's placements; or in refusals what the sentence ends with */
} propagation;

static tsr_mesh *parse_mesh(const char *text)
{
    tsr_mesh *mesh;
    if (tsr_mesh_parse(NULL, NULL, text, &mesh) != TSR_OK)
        fail_msg("mesh %s: %s", text, tsr_status_message());
    return mesh;
}

static tsr_layout *parse_layout(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape,
                                tsr_dtype dtype)
{
    tsr_layout *layout;
    if (tsr_layout_parse(mesh, placements, ndim, shape, dtype, &layout) != TSR_OK)
        fail_msg("layout %s: %s", placements, tsr_status_message());
    return layout;
}

static int dims_of(const int64_t *shape)
{
    int ndim = 0;
    while (shape[ndim] != 0)
        ndim++;
    return ndim;
}

static tsr_status propagate(const propagation *p, tsr_layout **y)
{
    const int ndim = dims_of(p->x_shape);
    const int64_t w_shape[] = {8, p->x_shape[ndim - 1]};
    tsr_mesh *mesh = parse_mesh(p->mesh);
    tsr_layout *x = parse_layout(mesh, p->x, ndim, p->x_shape, TSR_F32),
               *w = parse_layout(mesh, p->w, 2, w_shape, TSR_F32);
    tsr_layout *b = p->b ? parse_layout(mesh, p->b, 1, w_shape, TSR_F32) : NULL;
    const tsr_status status = tsr_linear_propagate(x, w, b, y);
    tsr_layout_destroy(b);
    tsr_layout_destroy(w);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(mesh);
    return status;
}

static const propagation accepted[] = {
    {"2", {4, 6}, "R", "R", NULL, "R"},
    {"2", {4, 6}, "R", "S(0)", NULL, "S(1)"},
    {"2", {4, 6}, "R", "S(0)", "S(0)", "S(1)"},
    {"2", {4, 6}, "S(1)", "S(1)", NULL, "P"},
    {"2", {4, 6}, "S(1)", "S(1)", "R", "P"},
    {"2", {4, 6}, "S(0)", "R", "R", "S(0)"},
    {"2", {4, 6}, "P", "R", "R", "P"},
    {"2", {4, 6}, "P(avg)", "R", "R", "P(avg)"},
    {"2", {4, 6}, "R", "P", NULL, "P"},
    {"2", {6}, "R", "S(0)", "S(0)", "S(0)"},
    {"2", {6}, "S(0)", "S(1)", "R", "P"},
    {"2", {2, 3, 6}, "S(1)", "R", "R", "S(1)"},
    {"dp=2,tp=2", {4, 6}, "S(0),R", "R,S(0)", "R,S(0)", "S(0),S(1)"},
    {"dp=2,tp=2", {4, 6}, "S(0),S(1)", "R,S(1)", "R,R", "S(0),P"},
    {"2x2", {4, 6}, "S(1),S(1)", "S(1),S(1)", "R,R", "P,P"},
    {"2x2", {4, 6}, "S(1)[1],S(1)[0]", "S(1)[1],S(1)[0]", NULL, "P,P"},
    {"2x2", {4, 6}, "R,R", "S(0)[1],S(0)[0]", "S(0)[1],S(0)[0]", "S(1)[1],S(1)[0]"},
    {"2x2", {4, 6}, "S(0),R", "R,S(0)[3]", "R,S(0)", "S(0),S(1)"},
    {"2x2", {4, 6}, "S(1),R", "S(1),S(0)", "R,S(0)", "P,S(1)"},
    {"2x2", {4, 6}, "P(avg),S(1)", "R,S(1)", "R,R", "P(avg),P"},
    {"2", {4, 6}, "R", "S(0;unit=3)", "S(0;unit=3)", "S(1;unit=3)"},
    {"3", {4, 6}, "R", "S(0;balanced)", "S(0;balanced)", "S(1)"},
    {"2", {4, 6}, "R", "S(0;interleave=2)", "S(0;interleave=2)", "S(1;interleave=2)"},
    {"2", {4, 6}, "R", "S(0;blocks=4,2,2;unit=2)", "S(0;blocks=4,2,2;unit=2)", "S(1;blocks=4,2,2;unit=2)"},
    {"2", {4, 6}, "R", "S(0;sizes=7,1)", "S(0;sizes=7,1)", "S(1;unit=7)"},
    {"2", {4, 6}, "S(1;sizes=0,6)", "S(1;sizes=0,6)", "R", "P"},
    {"2", {4, 6}, "S(1;interleave=1)", "S(1;unit=1)", "R", "P"},
    /* Cuts are alike where every rank owns the same, however they are written. */
    {"2", {4, 6}, "S(1)", "S(1;balanced)", NULL, "P"},
    /* In mesh dims of size 1 every placement means the whole tensor. */
    {"1", {4, 6}, "S(1)", "R", "R", "R"},
    {"1", {4, 6}, "R", "S(0)", "R", "R"},
    {"1", {4, 6}, "P(max)", "R", "R", "R"},
    {"2x1", {4, 6}, "R,S(0)", "S(0),S(0)", "S(0),R", "S(1),R"},
};

static void factors_sharded_alike_shard_the_result_and_contracted_ones_leave_partial_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        const propagation *p = &accepted[i];
        tsr_layout *y;
        char text[TEXT];
        if (propagate(p, &y) != TSR_OK)
            fail_msg("mesh %s x %s w %s b %s: %s", p->mesh, p->x, p->w, p->b, tsr_status_message());
        tsr_layout_print(y, text, sizeof text);
        if (strcmp(text, p->expected) != 0)
            fail_msg("mesh %s x %s w %s b %s: y is %s, not %s", p->mesh, p->x, p->w, p->b, text, p->expected);
        assert_int_equal(tsr_layout_ndim(y), dims_of(p->x_shape));
        assert_int_equal(tsr_layout_shape(y)[tsr_layout_ndim(y) - 1], 8);
        tsr_layout_destroy(y);
    }
}

static const propagation refused[] = {
    {"2", {4, 6}, "S(1)", "R", NULL, "redistribute x from \"S(1)\" to \"R\""},
    {"2", {4, 6}, "R", "S(1)", NULL, "redistribute x from \"R\" to \"S(1)\""},
    {"2", {4, 6}, "S(0)", "S(0)", NULL, "redistribute w from \"S(0)\" to \"R\""},
    {"2", {4, 6}, "S(1)", "S(0)", NULL, "redistribute x from \"S(1)\" to \"R\""},
    {"2", {4, 6}, "S(0)", "S(1)", NULL, "redistribute w from \"S(1)\" to \"R\""},
    /* A weight that is cut over dp as FSDP stores it, alone and beside tensor parallelism. */
    {"dp=2", {4, 6}, "S(0)", "S(0)", "S(0)", WITHOUT_FSDP "redistribute w from \"S(0)\" to \"R\""},
    {"dp=2", {4, 6}, "S(0)", "S(1)", NULL, WITHOUT_FSDP "redistribute w from \"S(1)\" to \"R\""},
    {"dp=2", {2, 3, 6}, "S(0)", "S(0)", NULL, WITHOUT_FSDP "redistribute w from \"S(0)\" to \"R\""},
    {"dp=2,tp=2",
     {4, 6},
     "S(0),R",
     "S(0)[1],S(0)[0]",
     NULL,
     WITHOUT_FSDP "redistribute w from \"S(0)[1],S(0)[0]\" to \"R,S(0)\""},
    {"dp=2,tp=2", {4, 6}, "S(0),R", "S(1),S(0)", NULL, WITHOUT_FSDP "redistribute w from \"S(1),S(0)\" to \"R,S(0)\""},
    {"dp=2,tp=2",
     {4, 6},
     "S(0),S(1)",
     "S(0),S(1)",
     NULL,
     WITHOUT_FSDP "redistribute w from \"S(0),S(1)\" to \"R,S(1)\""},
    {"dp=2,tp=2",
     {4, 6},
     "S(0),R",
     "S(0;interleave=2),S(0;sizes=4,0)",
     NULL,
     WITHOUT_FSDP "redistribute w from \"S(0;interleave=2),S(0;sizes=4,0)\" to \"R,R\""},
    /* Errors name mesh dims. */
    {"dp=2,tp=2",
     {4, 6},
     "R,P",
     "R,S(0)",
     NULL,
     "x is Partial(sum) on mesh dim tp, which cuts dim 0 of w; redistribute x from \"R,P\" to \"R,R\""},
    {"a=2,b=2",
     {4, 6},
     "R,P(max)",
     "R,R",
     NULL,
     "x is Partial(max) on mesh dim b, which linear does not pass on: its terms must be reduced first; "
     "redistribute x from \"R,P(max)\" to \"R,R\""},
    /* Sequence parallelism: x is gathered. */
    {"tp=2", {4, 6}, "S(0)", "S(0)", NULL, "redistribute x from \"S(0)\" to \"R\""},
    {"sp=2", {4, 6}, "S(0)", "S(0)", NULL, "redistribute x from \"S(0)\" to \"R\""},
    {"2", {2, 3, 6}, "S(1)", "S(0)", NULL, "redistribute x from \"S(1)\" to \"R\""},
    {"2", {4, 6}, "P", "S(0)", NULL, "redistribute x from \"P\" to \"R\""},
    {"2", {4, 6}, "P", "P", NULL, "redistribute x from \"P\" to \"R\""},
    {"2", {4, 6}, "P(max)", "R", NULL, "redistribute x from \"P(max)\" to \"R\""},
    {"2", {4, 6}, "S(1)", "P(max)", NULL, "redistribute w from \"P(max)\" to \"S(1)\""},
    {"2", {4, 6}, "S(1;unit=2)", "S(1)", NULL, "redistribute x from \"S(1;unit=2)\" to \"S(1)\""},
    {"2",
     {4, 6},
     "S(1;sizes=2,4)",
     "S(1;sizes=4,2)",
     NULL,
     "redistribute x from \"S(1;sizes=2,4)\" to \"S(1;sizes=4,2)\""},
    {"2x2", {4, 6}, "S(1)[1],S(1)[0]", "S(1),S(1)", NULL, "redistribute x from \"S(1)[1],S(1)[0]\" to \"S(1),S(1)\""},
    {"2x2", {4, 6}, "S(0),R", "R,S(1)", NULL, "redistribute x from \"S(0),R\" to \"S(0),S(1)\""},
    {"2", {4, 6}, "R", "S(0)", "R", "redistribute b from \"R\" to \"S(0)\""},
    {"2", {4, 6}, "S(1)", "S(1)", "S(0)", "redistribute b from \"S(0)\" to \"R\""},
    {"2", {4, 6}, "S(1)", "S(1)", "P", "redistribute b from \"P\" to \"R\""},
    {"2", {4, 6}, "R", "S(0;balanced;unit=3)", "S(0)", "redistribute b from \"S(0)\" to \"S(0;balanced;unit=3)\""},
};

static void a_refusal_names_the_operand_and_the_layout_that_works(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused) / sizeof refused[0]; i++) {
        const propagation *p = &refused[i];
        tsr_layout *y = NULL;
        if (propagate(p, &y) != TSR_ERROR_ARGUMENT)
            fail_msg("mesh %s x %s w %s b %s is not refused", p->mesh, p->x, p->w, p->b);
        assert_null(y);
        const char *sentence = tsr_status_message();
        const size_t length = strlen(sentence), wanted = strlen(p->expected);
        if (length < wanted || strcmp(sentence + length - wanted, p->expected) != 0)
            fail_msg("mesh %s x %s w %s b %s: \"%s\" does not end with \"%s\"", p->mesh, p->x, p->w, p->b, sentence,
                     p->expected);
    }
}

static const char *const pieces[] = {"R", "S(0)", "S(1)", "P", "P(max)"};
enum { PIECES = sizeof pieces / sizeof pieces[0], BIAS_PIECES = 4 };
static const char *const bias_pieces[BIAS_PIECES] = {"R", "S(0)", "P", "P(avg)"};

/* The pairs of pieces that a mesh dim accepts, with the bias of each, derived from the mathematics
 * instead of the library's rule. */
static int oracle_takes(int x, int w, int bias)
{
    enum { R, S0, S1, P };
    const int pairs = (x == R && w == R) || (x == R && w == S0) || (x == S0 && w == R) || (x == S1 && w == S1) ||
                      (x == P && w == R) || (x == R && w == P);
    return pairs && (bias < 0 || bias == (w == S0 ? S0 : R));
}

static void write_pieces(const char *const *from, const int *chosen, int ndim, char *text)
{
    size_t length = 0;
    for (int dim = 0; dim < ndim; dim++)
        length += (size_t)snprintf(text + length, TEXT - length, "%s%s", dim ? "," : "", from[chosen[dim]]);
}

/* Does what the sentence of a refusal says. */
static void follow_advice(propagation *p, char *x, char *w, char *b)
{
    const char *advice = strstr(tsr_status_message(), "; redistribute ");
    if (!advice)
        fail_msg("mesh %s x %s w %s b %s: no advice in \"%s\"", p->mesh, p->x, p->w, p->b, tsr_status_message());
    for (advice += strlen("; redistribute "); advice; advice = strstr(advice, " and ")) {
        char operand[8], from[TEXT], to[TEXT];
        advice += strncmp(advice, " and ", 5) == 0 ? 5 : 0;
        assert_int_equal(sscanf(advice, "%7s from \"%127[^\"]\" to \"%127[^\"]\"", operand, from, to), 3);
        char *target = operand[0] == 'x' ? x : operand[0] == 'w' ? w : b;
        assert_string_equal(target, from);
        snprintf(target, TEXT, "%s", to);
    }
}

static void check_combination(const char *mesh, int ndim, const int *x, const int *w, const int *bias)
{
    char x_text[TEXT], w_text[TEXT], b_text[TEXT];
    write_pieces(pieces, x, ndim, x_text);
    write_pieces(pieces, w, ndim, w_text);
    if (bias)
        write_pieces(bias_pieces, bias, ndim, b_text);
    propagation p = {mesh, {4, 6}, x_text, w_text, bias ? b_text : NULL, NULL};
    int expected = 1;
    for (int dim = 0; dim < ndim; dim++)
        expected = expected && oracle_takes(x[dim], w[dim], bias ? bias[dim] : -1);
    for (int changes = 0;; changes++) {
        tsr_layout *y;
        const tsr_status status = propagate(&p, &y);
        if (changes == 0 && (status == TSR_OK) != expected)
            fail_msg("mesh %s x %s w %s b %s: taken is %d, should be %d (%s)", mesh, x_text, w_text, p.b,
                     status == TSR_OK, expected, tsr_status_message());
        if (status == TSR_OK) {
            tsr_layout_destroy(y);
            return;
        }
        /* Each operand has to be told once at most. */
        if (changes == 3)
            fail_msg("mesh %s: the advice does not lead to a layout that works; now x %s w %s b %s", mesh, x_text,
                     w_text, p.b);
        follow_advice(&p, x_text, w_text, b_text);
    }
}

/* A layout may not have both P and P(max). */
static int mixes_partials(const int *chosen, int ndim)
{
    int seen = 0;
    for (int dim = 0; dim < ndim; dim++)
        seen |= chosen[dim] == 3 ? 1 : chosen[dim] == 4 ? 2 : 0;
    return seen == 3;
}

static void for_each_combination(const char *mesh, int ndim)
{
    int choice[6] = {0};
    const int radix = PIECES;
    for (;;) {
        const int possible = !mixes_partials(choice, ndim) && !mixes_partials(choice + ndim, ndim);
        int bias_in_range = 1;
        for (int dim = 0; dim < ndim; dim++)
            bias_in_range = bias_in_range && choice[2 * ndim + dim] < BIAS_PIECES;
        if (possible && bias_in_range)
            check_combination(mesh, ndim, choice, choice + ndim, choice + 2 * ndim);
        if (possible && choice[2 * ndim] == 0 && choice[3 * ndim - 1] == 0)
            check_combination(mesh, ndim, choice, choice + ndim, NULL);
        int at = 0;
        while (at < 3 * ndim && ++choice[at] == radix)
            choice[at++] = 0;
        if (at == 3 * ndim)
            return;
    }
}

static void exactly_the_mathematically_right_combinations_are_taken_and_advice_leads_to_one(void **state)
{
    (void)state;
    for_each_combination("2", 1);
    for_each_combination("2x3", 2);
}

static void expect_refusal(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, const char *words)
{
    tsr_layout *y = NULL;
    assert_int_equal(tsr_linear_propagate(x, w, b, &y), TSR_ERROR_ARGUMENT);
    assert_null(y);
    if (!strstr(tsr_status_message(), words))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), words);
}

static void operands_that_do_not_match_are_named(void **state)
{
    (void)state;
    tsr_mesh *mesh = parse_mesh("2"), *other = parse_mesh("2@2"), *wider = parse_mesh("2x1");
    tsr_layout *x = parse_layout(mesh, "R", 2, (int64_t[]){4, 6}, TSR_F32),
               *w = parse_layout(mesh, "R", 2, (int64_t[]){8, 6}, TSR_F32);
    tsr_layout *wrong_w = parse_layout(mesh, "R", 2, (int64_t[]){8, 5}, TSR_F32);
    tsr_layout *swapped_w = parse_layout(mesh, "R", 2, (int64_t[]){6, 8}, TSR_F32);
    tsr_layout *wrong_b = parse_layout(mesh, "R", 1, (int64_t[]){6}, TSR_F32);
    tsr_layout *wide_b = parse_layout(mesh, "R", 2, (int64_t[]){1, 8}, TSR_F32);
    tsr_layout *double_w = parse_layout(mesh, "R", 2, (int64_t[]){8, 6}, TSR_F64);
    tsr_layout *far_w = parse_layout(other, "R", 2, (int64_t[]){8, 6}, TSR_F32);
    tsr_layout *grid_w = parse_layout(wider, "R,R", 2, (int64_t[]){8, 6}, TSR_F32);
    tsr_layout *scalar = parse_layout(mesh, "R", 0, NULL, TSR_F32);
    expect_refusal(x, wrong_w, NULL, "dim 1 of w has size 5, but dim 1 of x has 6");
    expect_refusal(
        x, swapped_w, NULL,
        "tsr_linear_propagate: dim 1 of w has size 8, but dim 1 of x has 6; \"... k, o k + o -> ... o | k sum | "
        "linear {0}{1}\" wants them equal; a weight is (out_features, in_features), and this one, 6x8, looks "
        "transposed");
    expect_refusal(x, swapped_w, wide_b, "looks transposed");
    expect_refusal(x, w, wrong_b, "dim 0 of b has size 6, but dim 0 of w has 8");
    expect_refusal(x, w, wide_b, "b has 2 dims");
    expect_refusal(x, double_w, NULL, "x is f32 but w is f64");
    expect_refusal(x, far_w, NULL, "w on mesh 2@2");
    expect_refusal(x, grid_w, NULL, "w on mesh 2x1");
    expect_refusal(scalar, w, NULL, "x has 0 dims");
    expect_refusal(NULL, w, NULL, "tsr_linear_propagate: x is NULL");
    expect_refusal(x, NULL, NULL, "tsr_linear_propagate: w is NULL");
    tsr_layout *const layouts[] = {scalar, grid_w, far_w, double_w, wide_b, wrong_b, swapped_w, wrong_w, w, x};
    for (size_t i = 0; i < sizeof(layouts) / sizeof layouts[0]; i++)
        tsr_layout_destroy(layouts[i]);
    tsr_mesh_destroy(wider);
    tsr_mesh_destroy(other);
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(factors_sharded_alike_shard_the_result_and_contracted_ones_leave_partial_sums),
        cmocka_unit_test(a_refusal_names_the_operand_and_the_layout_that_works),
        cmocka_unit_test(exactly_the_mathematically_right_combinations_are_taken_and_advice_leads_to_one),
        cmocka_unit_test(operands_that_do_not_match_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
