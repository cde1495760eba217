/* The steps of well-known moves, their mesh dims, and their words. */
#include "layouts.h"
#include "support.h"

#include <tessera/explain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct known_steps {
    const char *mesh, *shape, *from, *to;
    const char *steps; /* with the mesh dims over all ranks, as bits in decimal */
    const char *to_mesh;
} known_steps;

static const known_steps moves[] = {
    {"4", "8x8", "S(0)", "S(0)", "copy:0", NULL},
    {"4", "8x8", "R", "S(0)", "copy:0", NULL},
    {"4", "8x8", "P", "P", "copy:0", NULL},
    {"4", "8x8", "R", "P(max)", "copy:0", NULL},
    {"4", "8x8", "R", "P", "copy:0 fill:0", NULL},
    {"4", "8x8", "S(0)", "P", "copy:0 fill:0", NULL},
    {"1", "8x8", "P", "S(0)", "copy:0", NULL},
    {"4", "8x8", "S(0)", "R", "all_gather:1", NULL},
    {"4", "0x8", "S(0)", "R", "all_gather:0", NULL},
    {"4", "8x8", "S(0)", "S(1)", "exchange:1", NULL},
    {"4", "8x8", "S(0)", "P(prod)", "exchange:1 fill:0", NULL},
    {"4", "8x8", "P", "S(0)", "reduce_scatter:1", NULL},
    {"4", "8x8", "P", "R", "all_reduce:1", NULL},
    {"2", "8x8", "P", "R", "all_reduce:1", NULL},
    {"4", "8x8", "P", "P(max)", "reduce_scatter:1 all_gather:1", NULL},
    {"4", "1x3", "S(0)", "R", "broadcast:1", NULL},
    {"4", "3x1", "S(0;sizes=0,0,3,0)", "R", "broadcast:1", NULL},
    {"2x2", "1x3", "S(0),R", "R,R", "all_gather:1", NULL},
    {"2x2", "8x8", "S(0),S(1)", "R,S(1)", "all_gather:1", NULL},
    {"2x2", "8x8", "S(0),S(1)", "S(0),R", "all_gather:2", NULL},
    {"2x2", "8x8", "S(0),S(0)", "S(0),R", "all_gather:2", NULL},
    {"2x2", "8x8", "S(0),S(0)", "R,S(0)", "exchange:3", NULL},
    {"2x2", "8x8", "S(0),S(0)", "R,R", "all_gather:3", NULL},
    {"2x2", "8x8", "S(0),S(1)", "S(1),S(0)", "exchange:3", NULL},
    {"2x2", "8x8", "S(0),P", "S(0),R", "all_reduce:2", NULL},
    {"2x2", "8x8", "P,R", "S(0),R", "reduce_scatter:1", NULL},
    {"2x3", "8x8", "R,P", "R,S(0)", "reduce_scatter:2 all_gather:1", NULL},
    {"2x3", "8x8", "S(0),P", "P,S(1)", "reduce_scatter:3 fill:0", NULL},
    {"2x2x2", "8x8", "S(0),S(0),S(0)", "S(1),S(1),S(1)", "exchange:7", NULL},
    {"2x1x2", "8x8", "S(0),R,S(1)", "S(0),S(0),R", "all_gather:4", NULL},
    {"4", "8x8", "S(0)", "S(0)", "exchange:0", "4@4"},
    {"6", "12x7", "S(0)", "S(0)", "exchange:0", "8"},
    {"1", "8x8", "R", "R", "broadcast:0", "4@1"},
    {"4", "8x8", "R", "R", "exchange:0", "1@9"},
    {"2", "8x8", "P", "R", "reduce_scatter:0 all_gather:0", "2@2"},
};

static tsr_plan *plan_for(const tsr_layout *src, const tsr_layout *dst, int64_t rank)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = rank;
    tsr_plan *plan = NULL;
    expect_ok(tsr_plan_create(src, dst, &options, &plan));
    return plan;
}

static void print_steps(const tsr_plan_survey *survey, char *text, size_t capacity)
{
    size_t length = 0;
    for (size_t i = 0; i < survey->step_count; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%s:%u", i ? " " : "",
                                   tsr_step_op_name(survey->steps[i].op), survey->steps[i].mesh_dims);
}

static void well_known_moves_have_well_known_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(moves) / sizeof moves[0]; i++) {
        const known_steps *m = &moves[i];
        tsr_layout *src = layout_of(m->mesh, m->shape, m->from),
                   *dst = layout_of(m->to_mesh ? m->to_mesh : m->mesh, m->shape, m->to);
        tsr_plan *plan = plan_for(src, dst, TSR_RANK_NONE);
        tsr_plan_survey survey;
        char text[256] = "";
        expect_ok(tsr_plan_survey_of(plan, &survey));
        print_steps(&survey, text, sizeof text);
        if (strcmp(text, m->steps) != 0)
            fail_msg("--mesh %s --to-mesh %s --shape %s --from %s --to %s: %s, not %s", m->mesh,
                     m->to_mesh ? m->to_mesh : m->mesh, m->shape, m->from, m->to, text, m->steps);
        tsr_plan_destroy(plan);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

static void ops_have_the_names_that_the_tool_prints(void **state)
{
    (void)state;
    static const char *const names[] = {"copy",           "fill",       "exchange", "all_gather",
                                        "reduce_scatter", "all_reduce", "broadcast"};
    for (int op = TSR_STEP_COPY; op <= TSR_STEP_BROADCAST; op++)
        assert_string_equal(tsr_step_op_name((tsr_step_op)op), names[op]);
    assert_null(tsr_step_op_name((tsr_step_op)(TSR_STEP_BROADCAST + 1)));
    assert_null(tsr_step_op_name((tsr_step_op)-1));
}

/* Moves made together, and what their steps are. */
static const struct {
    const char *from[2], *to[2], *steps;
} batches[] = {
    {{"P", "S(0)"}, {"R", "S(1)"}, "exchange:1 all_gather:1"},
    {{"P", "P"}, {"R", "S(0)"}, "reduce_scatter:1 all_gather:1"},
    {{"P", "P"}, {"R", "R"}, "all_reduce:1"},
    {{"R", "S(0)"}, {"S(0)", "R"}, "all_gather:1"},
    {{"R", "R"}, {"S(0)", "P"}, "copy:0 fill:0"},
    {{"S(0)", "R"}, {"S(1)", "P"}, "exchange:1 fill:0"},
};

static void moves_that_are_made_together_share_their_steps(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof batches / sizeof batches[0]; i++) {
        const tsr_layout *src[2], *dst[2];
        tsr_plan *plan = NULL;
        tsr_plan_survey survey;
        char text[256] = "";
        for (int k = 0; k < 2; k++) {
            src[k] = layout_of("3", "6x6", batches[i].from[k]);
            dst[k] = layout_of("3", "6x6", batches[i].to[k]);
        }
        expect_ok(tsr_plan_create_batch(2, src, dst, NULL, &plan));
        expect_ok(tsr_plan_survey_of(plan, &survey));
        print_steps(&survey, text, sizeof text);
        assert_string_equal(text, batches[i].steps);
        tsr_plan_destroy(plan);
        for (int k = 0; k < 2; k++) {
            tsr_layout_destroy((tsr_layout *)src[k]);
            tsr_layout_destroy((tsr_layout *)dst[k]);
        }
    }
}

static const struct {
    const char *mesh, *from, *to;
    int64_t ranks_per_node;
    const char *words[3];
} sentences[] = {
    {"4",
     "R",
     "P",
     0,
     {"each rank copies what it keeps", "what holds no value of a new Partial is filled with what changes nothing"}},
    {"4", "S(0)", "S(1)", 0, {"each rank takes just the boxes that it lacks"}},
    {"dp=2,tp=2", "S(0),S(1)", "R,S(1)", 0, {"pieces along dp go to every rank there"}},
    {"2x2", "S(0),S(1)", "R,R", 0, {"pieces along mesh dim 0, mesh dim 1 go to every rank there"}},
    {"tp=4", "P(avg)", "S(0)", 0, {"terms along tp are reduced (avg), each part once"}},
    {"tp=4", "P", "R", 0, {"terms along tp are reduced (sum), a part by each owner, who gives it to the others"}},
    {"tp=2", "P(max)", "R", 0, {"terms along tp are reduced (max), by every owner for itself"}},
    {"tp=4", "P", "P(max)", 0, {"terms along tp are reduced (sum), each part once", "results go to all their owners"}},
    {"tp=4",
     "P",
     "P(max)",
     2,
     {"terms along tp are reduced (sum), each part once", "results go to their owners, into each node once",
      "ranks of a node give each other their shares"}},
    {"4",
     "S(0)",
     "R",
     2,
     {"what a node lacks crosses into it once, a share to each of its ranks",
      "ranks of a node give each other their shares"}},
};

static void steps_say_in_words_what_they_do(void **state)
{
    (void)state;
    static const tsr_cost_profile quick_inside = {{0.0, 1e15}, {1e-3, 1e3}};
    for (size_t i = 0; i < sizeof sentences / sizeof sentences[0]; i++) {
        tsr_layout *src = layout_of(sentences[i].mesh, "8x8", sentences[i].from),
                   *dst = layout_of(sentences[i].mesh, "8x8", sentences[i].to);
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.nodes.ranks_per_node = sentences[i].ranks_per_node;
        options.profile = &quick_inside;
        tsr_plan *plan = NULL;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        for (size_t step = 0; step < 3; step++) {
            char text[256], part[8];
            const char *words = sentences[i].words[step] ? sentences[i].words[step] : "";
            const size_t length = strlen(words);
            assert_int_equal(tsr_plan_step_print(plan, step, text, sizeof text), length);
            assert_string_equal(text, words);
            assert_int_equal(tsr_plan_step_print(plan, step, NULL, 0), length);
            assert_int_equal(tsr_plan_step_print(plan, step, part, sizeof(part)), length);
            assert_int_equal(strncmp(part, words, 7), 0);
            assert_int_equal(strlen(part), length < 7 ? length : 7);
        }
        tsr_plan_destroy(plan);
        tsr_layout_destroy(src);
        tsr_layout_destroy(dst);
    }
}

static const char golden[] =
    "redistribute f32 64x64 P,S(0) on mesh dp=2,tp=2 -> f32 64x64 R,S(1) on mesh dp=2,tp=2\n"
    "straight out of peers' memory, for bytes\n"
    "step 0, reduce_scatter: terms along dp are reduced (sum), each part once\n"
    "    receives 6144 bytes from 3 ranks, sends 6144 to 3 ranks\n"
    "step 1, all_gather: results go to all their owners\n"
    "    receives 4096 bytes from 1 rank, sends 4096 to 1 rank\n"
    "rank 1 receives 10240 bytes, where only the total over ranks has a lower bound; sends 10240, keeps 2048\n"
    "workspace 0 bytes, 1.64e-6 seconds by the cost model; gathering and slicing would receive 16384 bytes\n";

static void a_plan_describes_itself_in_words(void **state)
{
    (void)state;
    tsr_layout *src = layout_of("dp=2,tp=2", "64x64", "P,S(0)"), *dst = layout_of("dp=2,tp=2", "64x64", "R,S(1)");
    tsr_plan *plan = plan_for(src, dst, 1), *nobodys = plan_for(src, dst, TSR_RANK_NONE);
    char text[2048], part[20];
    size_t length = 0;
    expect_ok(tsr_plan_describe(plan, text, sizeof text, &length));
    assert_string_equal(text, golden);
    assert_int_equal(length, sizeof golden - 1);
    expect_ok(tsr_plan_describe(plan, part, sizeof(part), &length));
    assert_int_equal(length, sizeof golden - 1);
    assert_int_equal(strncmp(part, golden, 19), 0);
    assert_int_equal(strlen(part), 19);
    expect_ok(tsr_plan_describe(plan, NULL, 0, &length));
    assert_int_equal(length, sizeof golden - 1);
    expect_ok(tsr_plan_describe(nobodys, text, sizeof text, &length));
    assert_null(strstr(text, "receives"));
    assert_non_null(strstr(text, "step 1, all_gather"));
    tsr_plan_destroy(plan);
    tsr_plan_destroy(nobodys);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

static void a_plan_says_how_ranks_lie_on_nodes(void **state)
{
    (void)state;
    static const int64_t uneven[] = {9, 9, 9, 4, 4, 4, 4, 4}, in_turn[] = {3, 2, 3, 2, 3, 2, 3, 2};
    static const struct {
        tsr_nodes nodes;
        const char *words;
    } rows[] = {
        {{0, 0, NULL}, ", for bytes\n"},
        {{4, 0, NULL}, ", for bytes, 4 ranks a node\n"},
        {{1, 0, NULL}, ", for bytes, 1 rank a node\n"},
        {{0, 8, uneven}, ", for bytes, nodes of 3, 5 ranks\n"},
        {{0, 8, in_turn}, ", for bytes, ranks on nodes 0, 1, 0, 1, 0, 1, 0, 1\n"},
        /* All ranks are on one node, so no step says that it crosses nodes. */
        {{8, 0, NULL}, ", for bytes\n"},
    };
    tsr_layout *src = layout_of("8", "16", "S(0)"), *dst = layout_of("8", "16", "R");
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        tsr_plan *plan = NULL;
        char text[1024];
        size_t length;
        options.nodes = rows[i].nodes;
        expect_ok(tsr_plan_create(src, dst, &options, &plan));
        expect_ok(tsr_plan_describe(plan, text, sizeof text, &length));
        tsr_plan_destroy(plan);
        if (!strstr(text, rows[i].words))
            fail_msg("\"%s\" is not in \"%s\"", rows[i].words, text);
    }
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_known_moves_have_well_known_steps),
        cmocka_unit_test(ops_have_the_names_that_the_tool_prints),
        cmocka_unit_test(moves_that_are_made_together_share_their_steps),
        cmocka_unit_test(steps_say_in_words_what_they_do),
        cmocka_unit_test(a_plan_says_how_ranks_lie_on_nodes),
        cmocka_unit_test(a_plan_describes_itself_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
