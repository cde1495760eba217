/* Rules as data: factor strings, and the layouts that follow from them. */
#include "rule_cases.h"

#include <tessera/mesh.h>
#include <tessera/ops.h>
#include <tessera/sys/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void rules_are_data(void **state)
{
    tsr_op_rule rule;
    (void)state;
    assert_int_equal(tsr_op_rule_parse("... k, o k + o -> ... o | k sum | linear {0}{1}", &rule), TSR_OK);
    assert_int_equal(rule.operand_count, 3);
    assert_int_equal(rule.result_count, 1);
    assert_int_equal(rule.factor_count, 2);
    assert_string_equal(rule.factors[0], "k");
    assert_int_equal(rule.operands[0].item[0], TSR_OP_ELLIPSIS);
    assert_int_equal(rule.operands[1].item[1], 0);
    assert_true(rule.operands[2].added && !rule.operands[1].added);
    assert_true(rule.marks[0].reduces && rule.marks[0].reduction == TSR_SUM && !rule.marks[1].reduces);
    assert_int_equal(rule.linear_count, 2);
    assert_int_equal(rule.linear[1], 2);

    assert_int_equal(tsr_op_rule_parse("b1 head 1, head->b1 , 1 head| head b1 exchange positional | ... whole"
                                       "| monotone {0 1} | antitone {0}",
                                       &rule),
                     TSR_OK);
    assert_string_equal(rule.factors[1], "head");
    assert_int_equal(rule.operands[0].item[2], TSR_OP_ONE);
    assert_int_equal(rule.result_count, 2);
    assert_true(rule.marks[0].exchange && rule.marks[1].positional && rule.ellipsis.whole);
    assert_int_equal(rule.monotone, 3);
    assert_int_equal(rule.antitone, 1);
    assert_int_equal(tsr_op_rule_parse("->", &rule), TSR_OK);
    assert_int_equal(rule.operands[0].count, 0);
}

static void wrong_rules_are_pointed_at(void **state)
{
    static const char *const wrong[][2] = {
        {"a, b", "rule \"a, b\": expected \"->\" at the end"},
        {"a B -> a", "rule \"a B -> a\", character 2: expected a factor, \"1\", \"...\" or the next term, found \"B\""},
        {"a a -> a", "rule \"a a -> a\", character 2: expected each factor and \"...\" once, found \"a\""},
        {"a -> b", "rule \"a -> b\", character 5: expected a factor of an operand, found \"b\""},
        {"a sum -> a",
         "rule \"a sum -> a\", character 2: expected a factor, \"1\", \"...\" or the next term, found \"s\""},
        {"a -> a | a", "rule \"a -> a | a\": expected a mark such as sum, exchange or whole at the end"},
        {"a -> a | sum", "rule \"a -> a | sum\", character 9: expected a factor, found \"s\""},
        {"a -> a | b sum", "rule \"a -> a | b sum\", character 9: expected a factor, found \"b\""},
        {"a -> a | linear", "rule \"a -> a | linear\": expected \"{\" at the end"},
        {"a -> a | linear {1}",
         "rule \"a -> a | linear {1}\", character 17: expected an operand's number or \"}\", found \"1\""},
        {"a -> a ) ",
         "rule \"a -> a ) \", character 7: expected a factor, \"1\", \"...\" or the next term, found \")\""},
        {"a b -> a",
         "rule \"a b -> a\": a result lacks the factor b, so a mark must say what becomes of it, as in \"| b sum\""},
        {"a, a, a, a, a, a, a, a, a -> a",
         "rule \"a, a, a, a, a, a, a, a, a -> a\", character 23: expected \"->\", found \" \""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        tsr_op_rule rule;
        assert_int_equal(tsr_op_rule_parse(wrong[i][0], &rule), TSR_ERROR_ARGUMENT);
        assert_string_equal(tsr_status_message(), wrong[i][1]);
    }
}

#define LINEAR "... k, o k + o -> ... o | k sum | linear {0}{1}"
#define ADD    "..., ... -> ... | linear {0 1}"
#define MUL    "..., ... -> ... | linear {0}{1}"
#define MATMUL "... m k, ... k n -> ... m n | k sum | linear {0}{1}"
#define NORM   "... h, h -> ... h | h exchange | linear {1}"
#define TOP    "... v -> ..., ... v | v max"

static const rule_case accepted[] = {
    {LINEAR, "2", {"4x6 R", "8x6 S(0)", "8 S(0)"}, "S(1)"},
    {LINEAR, "2", {"4x6 S(1)", "8x6 S(1)", "8 R"}, "P"},
    {LINEAR, "2", {"4x6 S(1)", "8x6 S(1)", NULL}, "P"},
    {LINEAR, "2x2", {"4x6 S(0),R", "8x6 R,S(0)", "8 R,S(0)"}, "S(0),S(1)"},
    {MATMUL, "2", {"5x4x6 S(0)", "5x6x8 S(0)"}, "S(0)"},
    {MATMUL, "2x2", {"4x6 S(0),S(1)", "6x8 R,S(0)"}, "S(0),P"},
    {MATMUL, "2", {"4x6 P(avg)", "6x8 R"}, "P(avg)"},
    /* "..." is aligned at the right, and dims of size 1 are repeated. */
    {ADD, "2", {"4x6 S(1)", "6 S(0)"}, "S(1)"},
    {ADD, "2", {"4x6 S(0)", "6 R"}, "S(0)"},
    {ADD, "2", {"4x1 S(0)", "1x6 R"}, "S(0)"},
    {ADD, "2", {"4x0 S(0)", "4x1 S(0)"}, "S(0)"},
    {ADD, "2", {"scalar R", "4 S(0)"}, "S(0)"},
    {ADD, "2", {"1 S(0)", "1 S(0)"}, "S(0)"},
    /* Partial */
    {ADD, "2", {"4 P", "4 P"}, "P"},
    {ADD, "2", {"4 P(avg)", "4 R"}, "P(avg)"},
    {MUL, "2x2", {"4 P,R", "4 R,P"}, "P,P"},
    {MUL, "2x2", {"4 P,R", "4 R,P(avg)"}, "P,P(avg)"},
    {"..., ... -> ... | monotone {0} | antitone {1}", "2", {"4 R", "4 P(max)"}, "P(min)"},
    {NORM, "2", {"4x6 S(1)", "6 S(0)"}, "S(1)"},
    {NORM, "2", {"4x6 R", "6 P"}, "P"},
    {TOP, "2", {"4x6 S(1)"}, "P(max) S(1)"},
    {"... v -> ... | v prod", "2", {"4x6 S(1)"}, "P(prod)"},
    {"v -> 1 | v exchange", "2", {"6 S(0)"}, "R"},
    /* Alike is what owns alike, and the plainest form is printed. */
    {ADD, "2", {"8 S(0;balanced)", "8 S(0)"}, "S(0)"},
    {ADD, "2", {"8 S(0;unit=2)", "8 S(0;sizes=4,4)"}, "S(0)"},
    {ADD, "2", {"6 S(0;sizes=4,2)", "6 S(0;unit=2)"}, "S(0;unit=2)"},
    {ADD, "4", {"9 S(0;sizes=3,2,2,2)", "9 S(0;sizes=3,2,2,2)"}, "S(0;balanced)"},
    {ADD, "2x2", {"8 S(0),S(0)", "8 S(0;sizes=4,4),S(0;balanced)"}, "S(0),S(0)"},
    {ADD, "2x2", {"4 S(0)[1],S(0)[0]", "4 S(0)[1],S(0)[0]"}, "S(0)[1],S(0)[0]"},
    {MUL, "2", {"8 S(0;interleave=2)", "8 S(0;blocks=4,4)"}, "S(0;interleave=2)"},
    /* On mesh dims of size 1 any placement fits. */
    {ADD, "1x2", {"4 P,S(0)", "4 R,S(0)"}, "R,S(0)"},
    {ADD, "1", {"4 S(0)", "4 P"}, "R"},
    {NULL},
};

static const rule_case refused[] = {
    {ADD,
     "2",
     {"4 P", "4 R"},
     "x is Partial(sum) on mesh dim 0 and y is not, so y would count once for each rank; redistribute x from \"P\" to "
     "\"R\""},
    {ADD,
     "tp=2",
     {"4 P", "4 P(avg)"},
     "y is Partial(avg) on mesh dim tp and x is Partial(sum), which op does not pass on together; redistribute x from "
     "\"P\" to \"R\""},
    {MUL,
     "2",
     {"4 P", "4 P"},
     "y is Partial(sum) on mesh dim 0 and x is Partial(sum), which op does not pass on together; redistribute y from "
     "\"P\" to \"R\""},
    {MUL,
     "2",
     {"4 S(0)", "4 P"},
     "y is Partial(sum) on mesh dim 0, which cuts dim 0 of x; redistribute y from \"P\" to \"S(0)\""},
    {MUL,
     "2",
     {"4x6 S(0)", "4x6 S(1)"},
     "mesh dim 0 cuts dim 0 of x and dim 1 of y, which are different factors of \"" MUL
     "\"; redistribute y from \"S(1)\" to \"S(0)\""},
    {MUL,
     "2",
     {"4x6 S(0)", "1x6 S(0)"},
     "dim 0 of y has size 1 and is repeated, so mesh dim 0 must not cut it; redistribute y from \"S(0)\" to \"R\""},
    {MUL,
     "2",
     {"9 S(0)", "9 S(0;sizes=4,5)"},
     "mesh dim 0 must cut dim 0 of x and dim 0 of y alike; redistribute y from \"S(0;sizes=4,5)\" to \"S(0)\""},
    {MUL, "2x2", {"4 S(0)[1],S(0)[0]", "4 S(0),S(0)"}, "redistribute y from \"S(0),S(0)\" to \"S(0)[1],S(0)[0]\""},
    {MATMUL, "2", {"4x6 S(1)", "6x8 R"}, "redistribute y from \"R\" to \"S(0)\""},
    {LINEAR,
     "2",
     {"4x6 S(1)", "8x6 S(1)", "8 S(0)"},
     "z is added once, and must be cut as the result is; redistribute z from \"S(0)\" to \"R\""},
    {"... v -> ... v | v whole",
     "2x2",
     {"4x6 S(0),S(1)"},
     "mesh dim 1 cuts dim 1 of x, which op needs whole; redistribute x from \"S(0),S(1)\" to \"S(0),R\""},
    {"... -> ...",
     "2",
     {"4 P(max)"},
     "x is Partial(max) on mesh dim 0, which op does not pass on: its terms must be reduced first; redistribute x from "
     "\"P(max)\" to \"R\""},
    /* The largest of least terms is not the least of largest ones. */
    {"v -> | v max | monotone {0}", "2", {"6 P(min)"}, "redistribute x from \"P(min)\" to \"R\""},
    {"a b -> a | b max | linear {0}",
     "2x2",
     {"4x6 P,S(1)"},
     "the result would be Partial on mesh dim 1 by an op that does not go with that of another mesh dim; redistribute "
     "x from \"P,S(1)\" to \"P,R\""},
    /* Shapes */
    {MATMUL,
     "2",
     {"4x6 R", "5x8 R"},
     "op: dim 0 of y has size 5, but dim 1 of x has 6; \"" MATMUL "\" wants them equal"},
    {MATMUL, "2", {"4x1 R", "5x8 R"}, "wants them equal"},
    {ADD, "2", {"4x2 R", "4x3 R"}, "op: dim 1 of y has size 3, but dim 1 of x has 2; \"" ADD "\" wants them equal"},
    {"v -> v", "2", {"4x6 R"}, "op: x has 2 dims, but \"v -> v\" wants 1"},
    {"... v w -> ... v w", "2", {"4 R"}, "op: x has 1 dim, but \"... v w -> ... v w\" wants at least 2"},
    {"1 v -> v", "2", {"2x6 R"}, "op: dim 0 of x has size 2, but \"1 v -> v\" wants 1"},
    {ADD, "2", {"4 R", NULL}, "op: y is NULL"},
    {NULL},
};

static void layouts_follow_from_rules(void **state)
{
    (void)state;
    rule_accepted(accepted);
}

static void refusals_name_what_works(void **state)
{
    (void)state;
    rule_refused(refused);
}

static void meshes_must_be_equal(void **state)
{
    const tsr_op_names names = {.caller = "op", .op = "op", .rule = ADD, .operands = {"x", "y"}};
    const tsr_dtype dtypes[TSR_OP_RESULTS] = {TSR_F32};
    tsr_mesh *line, *square;
    tsr_op_rule rule;
    const tsr_op_shaping shaping = {.dtypes = dtypes};
    tsr_op_inferred inferred;
    (void)state;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "4", &line), TSR_OK);
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2x2", &square), TSR_OK);
    assert_int_equal(tsr_op_rule_parse(ADD, &rule), TSR_OK);
    tsr_layout *const x = rule_layout(line, "4 R"), *const y = rule_layout(square, "4 R,R");
    assert_int_equal(tsr_op_propagate_rule(&rule, &names, &shaping, (const tsr_layout *const[]){x, y}, &inferred),
                     TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(),
                        "op: x is on mesh 4 but y on mesh 2x2; both must be on one mesh, over one communicator");
    tsr_layout_destroy(y);
    tsr_layout_destroy(x);
    tsr_mesh_destroy(square);
    tsr_mesh_destroy(line);
}

/* Each rule of the table can be read, unless it is the general form of what the row writes. */
static void rules_of_the_table_are_rules(void **state)
{
    tsr_op_info info;
    (void)state;
    for (size_t i = 0; tsr_op_get(NULL, i); i++) {
        tsr_op_rule rule;
        tsr_op_describe(tsr_op_get(NULL, i), &info);
        if (!tsr_op_get(NULL, i)->rule_of && tsr_op_rule_parse(info.rule, &rule) != TSR_OK)
            fail_msg("%s: %s", info.name, tsr_status_message());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_data),
        cmocka_unit_test(wrong_rules_are_pointed_at),
        cmocka_unit_test(layouts_follow_from_rules),
        cmocka_unit_test(refusals_name_what_works),
        cmocka_unit_test(meshes_must_be_equal),
        cmocka_unit_test(rules_of_the_table_are_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
