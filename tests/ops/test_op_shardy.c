/* Rules as Shardy's text, there and back; what is lost, and hostile text. */
#include "wholes.h"

#include <tessera/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define OPERANDS 3

/* An op on operands "4x6 S(0)", and its texts: without "#sdy.op_sharding_rule<" and ", custom>". */
typedef struct writing {
    const char *op, *operands[OPERANDS], *text, *lost, *rule;
} writing;

#define PARTIALS "the marks of Partial operands (linear, monotone, antitone) are not said"

static const writing writings[] = {
    {"linear",
     {"8x16 R", "4x16 R", "4 R"},
     "([i, j], [k, j], [k])->([i, k]) {i=8, j=16, k=4} reduction={j}",
     "b is added once, but under Shardy by each rank that has a term of the sum; " PARTIALS,
     "i j, k j, k -> i k | j sum"},
    {"linear",
     {"8x16 R", "4x16 R", NULL},
     "([i, j], [k, j])->([i, k]) {i=8, j=16, k=4} reduction={j}",
     PARTIALS,
     "i j, k j -> i k | j sum"},
    {"exp", {"4x6 S(0)"}, "([i, j])->([i, j]) {i=4, j=6}", "", "i j -> i j"},
    {"exp",
     {"4x6 S(0;balanced)"},
     "([i, j])->([i, j]) {i=4, j=6}",
     "x is \"S(0;balanced)\", but Shardy cuts in chunks alone, and has no Partial",
     "i j -> i j"},
    {"add",
     {"4x6 R", "1x6 R"},
     "([i, j], [k, j])->([i, j]) {i=4, j=6, k=1} need_replication={k}",
     PARTIALS,
     "i j, k j -> i j | k whole"},
    {"max",
     {"6 R"},
     "([i])->([]) {i=6} need_replication={i}",
     "i is reduced by max, but Shardy reduces by sum alone, so it must replicate it; " PARTIALS,
     "i ->  | i whole"},
    {"attention",
     {"4x5x4 R", "2x6x4 R", "2x6x3 R"},
     "([ij, k, l], [i, m, l], [i, m, n])->([ij, k, n]) {i=2, j=2, k=5, l=4, m=6, n=3} need_replication={l, m}",
     "k is given to the op as global intervals, which Shardy does not tell; m is exchanged between ranks inside the "
     "op, but Shardy must replicate it",
     "(i j) k l, i m l, i m n -> (i j) k n | l m whole"},
};

static void rules_are_written_and_read(void **state)
{
    tsr_mesh *mesh;
    (void)state;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    for (size_t i = 0; i < sizeof writings / sizeof writings[0]; i++) {
        const writing *const w = &writings[i];
        const tsr_op *op;
        char text[512], lost[512], expected[512], rule[256];
        size_t length, lost_length;
        tsr_layout *operands[TSR_OP_MOST_OPERANDS] = {NULL};
        assert_int_equal(tsr_op_find(NULL, w->op, &op), TSR_OK);
        for (int j = 0; j < OPERANDS && w->operands[j]; j++)
            operands[j] = support_layout(mesh, w->operands[j]);
        if (tsr_op_sharding_rule(op, 0, NULL, (const tsr_layout *const *)operands, (tsr_text_room){text, sizeof text},
                                 (tsr_text_room){lost, sizeof lost}, &length, &lost_length) != TSR_OK)
            fail_msg("%s: %s", w->op, tsr_status_message());
        snprintf(expected, sizeof expected, "#sdy.op_sharding_rule<%s, custom>", w->text);
        assert_string_equal(text, expected);
        assert_string_equal(lost, w->lost);
        assert_int_equal(length, strlen(text));
        assert_int_equal(lost_length, strlen(lost));
        if (tsr_op_read_sharding_rule(text, rule, sizeof rule, &length) != TSR_OK)
            fail_msg("%s: %s", text, tsr_status_message());
        assert_string_equal(rule, w->rule);
        assert_int_equal(length, strlen(rule));
        char few[8] = "";
        assert_int_equal(tsr_op_sharding_rule(op, 0, NULL, (const tsr_layout *const *)operands,
                                              (tsr_text_room){few, sizeof few}, (tsr_text_room){NULL, 0}, &length,
                                              NULL),
                         TSR_OK);
        assert_string_equal(few, "#sdy.op");
        for (int j = 0; j < OPERANDS; j++)
            tsr_layout_destroy(operands[j]);
    }
    tsr_mesh_destroy(mesh);
}

/* Texts of Shardy's own, and the rules that they are. */
static const char *const readings[][2] = {
    {"#sdy.op_sharding_rule<([ij])->([i, j]) {i=2, j=3}, custom>", "(i j) -> i j"},
    {"#sdy.op_sharding_rule<([i, j]) -> ([ij]) {i=2, j=3}>", "i j -> (i j)"},
    {"#sdy.op_sharding_rule<([])->([]), custom>", " -> "},
    {"#sdy.op_sharding_rule<([i])->([i, j]) {i=2, j=3}>", "i -> i j | j whole"},
    {"#sdy.op_sharding_rule<([i, j])->([i]) {i=8, j=16} reduction={j} permutation={i} blocked_propagation={i}, custom>",
     "i j -> i | j sum | i permute"},
    {"#sdy.op_sharding_rule<([i, j, k], [k, j])->([j], [i, k]) {i=1, j=2, k=3} reduction={i, j} need_replication={k}>",
     "i j k, k j -> j, i k | i j sum | k whole"},
};

#define BEGIN "sharding rule \""
#define HEAD  "#sdy.op_sharding_rule<"

static const char *const hostile[][2] = {
    {"", BEGIN "\": expected \"" HEAD "\" at the end"},
    {"#sdy.sharding<@m>", BEGIN "#sdy.sharding<@m>\", character 0: expected \"" HEAD "\", found \"#\""},
    {HEAD "([a])->([a])", BEGIN HEAD "([a])->([a])\", character 24: expected a factor, i to z or z_1, .., found \"a\""},
    {HEAD "([i])", BEGIN HEAD "([i])\": expected \"->\" at the end"},
    {HEAD "([i])->([i])>", BEGIN HEAD "([i])->([i])>\", character 34: expected the factors' sizes, \"{\", found \">\""},
    {HEAD "([i])->([i]) {i=99999999999999999999}>",
     BEGIN HEAD "([i])->([i]) {i=99999999999999999999}>\", character 56: expected a size, found \"9\""},
    {HEAD "([i])->([i]) {j=1}>",
     BEGIN HEAD "([i])->([i]) {j=1}>\", character 36: expected sizes in the order of factors, found \"j\""},
    {HEAD "([i])->([i]) {i=1} reduction={k}>",
     BEGIN HEAD "([i])->([i]) {i=1} reduction={k}>\", character 52: expected a factor of a tensor, found \"k\""},
    {HEAD "([i])->([i]) {i=1} reduction={i} permutation={i}>", BEGIN HEAD
     "([i])->([i]) {i=1} reduction={i} permutation={i}>\", character 68: expected a factor that no other set "
     "has, found \"i\""},
    {HEAD "([i])->([i]) {i=1}> x", BEGIN HEAD "([i])->([i]) {i=1}> x\", character 42: expected nothing behind \">\", "
                                              "found \"x\""},
    {HEAD "([i])->([]) {i=1}>",
     BEGIN HEAD "([i])->([]) {i=1}>\": a result lacks i, so it must be in reduction or need_replication"},
    {HEAD "([k])->([k]) {i=1, j=1, k=1}>", BEGIN HEAD "([k])->([k]) {i=1, j=1, k=1}>\": no tensor has the factor i"},
    {HEAD "([z_900])->([i]) {}>",
     BEGIN HEAD "([z_900])->([i]) {}>\", character 29: expected the number of a factor that a rule has room for, "
                "found \"]\""},
    {HEAD "([i, i])->([i]) {i=2}>",
     "rule \"i i -> i\", character 2: expected each factor and \"...\" once, found \"i\""},
};

static void texts_of_others_are_read(void **state)
{
    char rule[256];
    (void)state;
    for (size_t i = 0; i < sizeof readings / sizeof readings[0]; i++) {
        if (tsr_op_read_sharding_rule(readings[i][0], rule, sizeof rule, NULL) != TSR_OK)
            fail_msg("%s", tsr_status_message());
        assert_string_equal(rule, readings[i][1]);
    }
}

static void hostile_texts_are_pointed_at(void **state)
{
    char rule[64], text[256];
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof hostile[0]; i++) {
        assert_int_equal(tsr_op_read_sharding_rule(hostile[i][0], rule, sizeof rule, NULL), TSR_ERROR_ARGUMENT);
        assert_string_equal(tsr_status_message(), hostile[i][1]);
    }
    /* All texts that are cut, or have another character, are refused or read; none is too long. */
    const char *const whole = readings[4][0];
    for (size_t length = 0; length < strlen(whole); length++) {
        snprintf(text, sizeof text, "%.*s", (int)length, whole);
        assert_int_equal(tsr_op_read_sharding_rule(text, rule, sizeof rule, NULL), TSR_ERROR_ARGUMENT);
        for (int c = 1; c < 128; c++) {
            snprintf(text, sizeof text, "%s", whole);
            text[length] = (char)c;
            tsr_op_read_sharding_rule(text, rule, sizeof rule, NULL);
        }
    }
    assert_int_equal(tsr_op_read_sharding_rule(NULL, rule, sizeof rule, NULL), TSR_ERROR_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_written_and_read),
        cmocka_unit_test(texts_of_others_are_read),
        cmocka_unit_test(hostile_texts_are_pointed_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
