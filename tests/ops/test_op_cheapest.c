/* The cheapest layouts of operands, and what policies allow: compared with all placements of small
 * cases, each planned. */
#include "wholes.h"

#include <tessera/explain.h>
#include <tessera/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define OPERANDS 3

typedef struct ask {
    const char *op, *mesh;
    const char *operands[OPERANDS]; /* "4x6 S(0)" */
    const char *result;             /* wanted, or NULL */
    const char *expected;           /* placements, apart by spaces */
} ask;

static void print_all(tsr_layout *const *layouts, char *text, size_t capacity)
{
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < OPERANDS && layouts[i]; i++) {
        length += (size_t)snprintf(text + length, capacity - length, "%s", i ? " " : "");
        length += tsr_layout_print(layouts[i], text + length, capacity - length);
    }
}

static void destroy_all(tsr_layout **layouts)
{
    for (int i = 0; i < OPERANDS; i++)
        tsr_layout_destroy(layouts[i]);
}

static const ask asks[] = {
    /* What fits stays. */
    {"mul", "2", {"4x6 S(0)", "4x6 S(0)"}, NULL, "S(0) S(0)"},
    {"add", "2", {"4 P", "4 P"}, NULL, "P P"},
    /* Slicing a replica, and making terms of one, moves nothing. */
    {"mul", "2", {"4x6 S(1)", "4x6 R"}, NULL, "S(1) S(1)"},
    {"matmul", "2", {"4x6 S(1)", "6x8 R"}, NULL, "S(1) S(0)"},
    {"add", "2", {"4 P", "4 R"}, NULL, "P P"},
    /* The smaller operand moves. */
    {"add", "2", {"4x6 S(0)", "6 S(0)"}, NULL, "S(0) R"},
    {"matmul", "2", {"4x6 S(1)", "6x800 S(1)"}, NULL, "R S(1)"},
    {"matmul", "2", {"400x6 S(0)", "6x8 S(0)"}, NULL, "S(0) R"},
    {"mul", "2", {"9 S(0;sizes=4,5)", "9 S(0)"}, NULL, "S(0) S(0)"},
    {"mul", "2", {"8 S(0;interleave=2)", "8 R"}, NULL, "S(0;interleave=2) S(0;interleave=2)"},
    {"mul", "2", {"4x6 P", "4x6 P"}, NULL, "P R"},
    {"relu", "2", {"4x6 P"}, NULL, "S(0)"},
    {"mul", "2x2", {"4x6 S(0),R", "4x6 R,S(1)"}, NULL, "S(0),S(1) S(0),S(1)"},
    /* Results count, if they are wanted somewhere. */
    {"matmul", "2", {"4x6 S(1)", "6x8 R"}, "R", "R R"},
    {"matmul", "2", {"4x600 S(1)", "600x8 R"}, "R", "S(1) S(0)"},
    {"matmul", "2", {"4x6 R", "6x8 R"}, "S(1)", "R S(1)"},
    /* On any number of ranks */
    {"mul", "1024x1024", {"4194304 S(0),S(0)", "4194304 R,R"}, NULL, "S(0),S(0) S(0),S(0)"},
    {NULL},
};

static void cheapest_layouts_are_known(void **state)
{
    (void)state;
    for (const ask *a = asks; a->op; a++) {
        tsr_mesh *mesh;
        const tsr_op *op;
        char text[256];
        tsr_layout *operands[OPERANDS] = {NULL}, *found[TSR_OP_MOST_OPERANDS] = {NULL};
        tsr_placement wanted[TSR_MAX_DIMS];
        int64_t numbers[8];
        int count;
        assert_int_equal(tsr_mesh_parse(NULL, NULL, a->mesh, &mesh), TSR_OK);
        assert_int_equal(tsr_op_find(NULL, a->op, &op), TSR_OK);
        for (int i = 0; i < OPERANDS && a->operands[i]; i++)
            operands[i] = support_layout(mesh, a->operands[i]);
        if (a->result)
            assert_int_equal(tsr_placements_parse(a->result, wanted, TSR_MAX_DIMS, &count, numbers, 8, NULL), TSR_OK);
        const tsr_placement *const results[] = {wanted};
        if (tsr_op_cheapest(op, 0, NULL, (const tsr_layout *const *)operands, a->result ? results : NULL, found) !=
            TSR_OK)
            fail_msg("%s: %s", a->op, tsr_status_message());
        print_all(found, text, sizeof text);
        if (strcmp(text, a->expected) != 0)
            fail_msg("%s %s %s: %s instead of %s", a->op, a->operands[0], a->operands[1], text, a->expected);
        destroy_all(found);
        destroy_all(operands);
        tsr_mesh_destroy(mesh);
    }
}

/* Bytes that all ranks receive when an operand moves. */
static int64_t count_bytes(const tsr_layout *from, const tsr_layout *to)
{
    tsr_plan *plan;
    tsr_plan_survey survey;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = TSR_RANK_NONE;
    assert_int_equal(tsr_plan_create(from, to, &options, &plan), TSR_OK);
    assert_int_equal(tsr_plan_survey_of(plan, &survey), TSR_OK);
    tsr_plan_destroy(plan);
    return survey.bytes_received.total;
}

static const char *const forms[] = {"R", "P", "S(0)", "S(1)"};

/* The i-th placements of a matrix. */
static tsr_layout *make(const tsr_mesh *mesh, const char *shape, int i)
{
    char text[64];
    snprintf(text, sizeof text, tsr_mesh_ndim(mesh) == 1 ? "%s %s" : "%s %s,%s", shape, forms[i % 4], forms[i / 4]);
    return support_layout(mesh, text);
}

/* True if a mesh dim makes terms of operands none of which has terms: these are no candidates, as
 * they move the cost to the results. */
static bool makes_terms(const tsr_mesh *mesh, tsr_layout *const tried[2], const tsr_layout *const *operands)
{
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        bool had = false, has = false;
        for (int i = 0; i < 2; i++) {
            had = had || tsr_layout_placements(operands[i])[k].kind == TSR_PARTIAL;
            has = has || tsr_layout_placements(tried[i])[k].kind == TSR_PARTIAL;
        }
        if (has && !had)
            return true;
    }
    return false;
}

/* The fewest bytes to placements that fit, of all that there are. */
static int64_t search_all(const tsr_op *op, const tsr_mesh *mesh, const char *const shapes[2],
                          const tsr_layout *const *operands)
{
    int64_t best = INT64_MAX;
    const int count = tsr_mesh_ndim(mesh) == 1 ? 4 : 16;
    for (int i = 0; i < count * count; i++) {
        tsr_layout *results[TSR_OP_MOST_RESULTS];
        tsr_layout *tried[2] = {make(mesh, shapes[0], i % count), make(mesh, shapes[1], i / count)};
        if (!makes_terms(mesh, tried, operands) &&
            tsr_op_propagate(op, 0, NULL, (const tsr_layout *const *)tried, results) == TSR_OK) {
            const int64_t bytes = count_bytes(operands[0], tried[0]) + count_bytes(operands[1], tried[1]);
            best = bytes < best ? bytes : best;
            tsr_layout_destroy(results[0]);
        }
        tsr_layout_destroy(tried[0]);
        tsr_layout_destroy(tried[1]);
    }
    return best;
}

static int compare_with_all(const char *name, const char *mesh_text, const char *const shapes[2], int step)
{
    tsr_mesh *mesh;
    const tsr_op *op;
    int compared = 0;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, mesh_text, &mesh), TSR_OK);
    assert_int_equal(tsr_op_find(NULL, name, &op), TSR_OK);
    const int count = tsr_mesh_ndim(mesh) == 1 ? 4 : 16;
    for (int i = 0; i < count * count; i += step, compared++) {
        tsr_layout *results[TSR_OP_MOST_RESULTS], *found[TSR_OP_MOST_OPERANDS];
        tsr_layout *operands[2] = {make(mesh, shapes[0], i % count), make(mesh, shapes[1], i / count)};
        const tsr_layout *const *const given = (const tsr_layout *const *)operands;
        assert_int_equal(tsr_op_cheapest(op, 0, NULL, given, NULL, found), TSR_OK);
        assert_int_equal(tsr_op_propagate(op, 0, NULL, (const tsr_layout *const *)found, results), TSR_OK);
        const int64_t bytes = count_bytes(operands[0], found[0]) + count_bytes(operands[1], found[1]);
        const int64_t least = search_all(op, mesh, shapes, given);
        if (bytes > least)
            fail_msg("%s, case %d: %lld bytes, but %lld would do", name, i, (long long)bytes, (long long)least);
        tsr_layout_destroy(results[0]);
        for (int j = 0; j < 2; j++) {
            tsr_layout_destroy(found[j]);
            tsr_layout_destroy(operands[j]);
        }
    }
    tsr_mesh_destroy(mesh);
    return compared;
}

static void no_placements_are_cheaper(void **state)
{
    static const char *const same[] = {"4x6", "4x6"}, *const product[] = {"4x6", "6x3"};
    (void)state;
    int compared = 0;
    for (int i = 0; i < 2; i++) {
        const char *const mesh = i ? "2x2" : "3";
        const int step = i ? 17 : 1;
        compared += compare_with_all("add", mesh, same, step);
        compared += compare_with_all("mul", mesh, same, step);
        compared += compare_with_all("maximum", mesh, same, step);
        compared += compare_with_all("matmul", mesh, product, step);
    }
    assert_true(compared > 100);
}

typedef struct settlement {
    const char *operands[2];
    tsr_policy policy;
    int64_t bytes;
    const char *expected; /* placements, or a sentence */
} settlement;

static const settlement settlements[] = {
    {{"4x6 S(0)", "4x6 S(0)"}, TSR_POLICY_FORBID, 0, "S(0) S(0)"},
    {{"4x6 S(0)", "4x6 R"},
     TSR_POLICY_FORBID,
     0,
     "mul: mesh dim 0 must cut dim 0 of x and dim 0 of y alike; redistribute y from \"R\" to \"S(0)\""},
    {{"4x6 S(0)", "4x6 P"}, TSR_POLICY_PARTIALS, 0, "S(0) S(0)"},
    {{"4x6 S(0)", "4x6 S(1)"},
     TSR_POLICY_PARTIALS,
     0,
     "mul: the policy allows to redistribute Partial operands alone: mesh dim 0 cuts dim 0 of x and dim 1 of y, which "
     "are different factors of \"..., ... -> ... | linear {0}{1}\"; redistribute y from \"S(1)\" to \"S(0)\""},
    {{"4x6 S(0)", "4x6 R"}, TSR_POLICY_ALLOW, 0, "S(0) S(0)"},
    {{"4x6 S(0)", "4x6 S(1)"}, TSR_POLICY_WARN, 0, "S(0) S(0)"},
    {{"4x6 S(0)", "4x6 S(1)"}, TSR_POLICY_ALLOW, 24, "S(0) S(0)"},
    {{"4x6 S(0)", "4x6 S(1)"},
     TSR_POLICY_ALLOW,
     23,
     "mul: within the policy's limit of 23 bytes no redistribution helps: mesh dim 0 cuts dim 0 of x and dim 1 of y, "
     "which are different factors of \"..., ... -> ... | linear {0}{1}\"; redistribute y from \"S(1)\" to \"S(0)\""},
};

static void policies_bound_what_moves(void **state)
{
    tsr_mesh *mesh;
    const tsr_op *op;
    (void)state;
    assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
    assert_int_equal(tsr_op_find(NULL, "mul", &op), TSR_OK);
    for (size_t i = 0; i < sizeof settlements / sizeof settlements[0]; i++) {
        const settlement *const s = &settlements[i];
        char text[256];
        tsr_layout *operands[OPERANDS] = {support_layout(mesh, s->operands[0]), support_layout(mesh, s->operands[1])};
        tsr_layout *found[TSR_OP_MOST_OPERANDS] = {NULL};
        if (tsr_op_settle(op, 0, NULL, (const tsr_layout *const *)operands, s->policy, s->bytes, found) == TSR_OK) {
            print_all(found, text, sizeof text);
            assert_string_equal(text, s->expected);
        } else {
            assert_string_equal(tsr_status_message(), s->expected);
        }
        destroy_all(found);
        destroy_all(operands);
    }
    tsr_layout *const one[] = {support_layout(mesh, "4 R"), support_layout(mesh, "5 R")};
    tsr_layout *found[TSR_OP_MOST_OPERANDS];
    assert_int_equal(tsr_op_cheapest(op, 0, NULL, (const tsr_layout *const *)one, NULL, found), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "wants them equal"));
    assert_int_equal(tsr_op_cheapest(op, 0, NULL, NULL, NULL, found), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "tsr_op_cheapest: operands is NULL");
    tsr_layout_destroy(one[0]);
    tsr_layout_destroy(one[1]);
    tsr_mesh_destroy(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cheapest_layouts_are_known),
        cmocka_unit_test(no_placements_are_cheaper),
        cmocka_unit_test(policies_bound_what_moves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
