/* Figures of moves that can be worked out by hand, and what is refused. */
#include "layouts.h"
#include "support.h"

#include <tessera/explain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static tsr_plan *plan_of(const char *mesh, const char *shape, const char *from, const char *to,
                         const tsr_plan_options *options)
{
    tsr_layout *src = layout_of(mesh, shape, from), *dst = layout_of(mesh, shape, to);
    tsr_plan *plan = NULL;
    test_case("--mesh %s --shape %s --from %s --to %s", mesh, shape, from, to);
    expect_ok(tsr_plan_create(src, dst, options, &plan));
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    return plan;
}

static tsr_plan_figures figures_of(const char *mesh, const char *shape, const char *from, const char *to, int64_t rank)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = rank;
    tsr_plan *plan = plan_of(mesh, shape, from, to, &options);
    tsr_plan_figures figures;
    expect_ok(tsr_plan_figures_of(plan, &figures));
    tsr_plan_destroy(plan);
    return figures;
}

static tsr_plan_survey survey_of(const char *mesh, const char *shape, const char *from, const char *to, tsr_mode mode)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = mode;
    tsr_plan *plan = plan_of(mesh, shape, from, to, &options);
    tsr_plan_survey survey;
    expect_ok(tsr_plan_survey_of(plan, &survey));
    tsr_plan_destroy(plan);
    return survey;
}

/* The most elements that any rank receives; 0 where only the total has a bound. */
static const struct {
    const char *mesh, *shape, *from, *to;
    int64_t most, total;
} cases[] = {
    {"8", "64x64", "S(0)", "S(1)", 448, 8 * 448},
    {"4x2", "64x64", "S(0),S(1)", "S(1),S(0)", 512, 3072},
    {"4x2", "64x64", "S(0)[0],S(0)[1]", "S(0)[1],S(0)[0]", 512, 3072},
    {"4x2", "16x16x16", "S(2),S(0)", "S(1)[0],S(1)[1]", 448, 8 * 448},
    {"4x2", "64x64", "S(0),R", "R,S(0)", 2048, 8 * 1536},
    {"4x2", "64x64", "S(0),R", "R,S(1)", 1536, 8 * 1536},
    {"8", "64x64", "S(0)", "R", 3584, 8 * 3584},
    {"4x2", "64x64", "S(0)[0],S(0)[1]", "S(0),S(1)", 256, 8 * 256},
    /* Parts of 2, 1, 1 and 1 rows of 3. */
    {"2x2", "5x3", "S(0),S(0)", "R,R", 12, 4 * 15 - 15},
    {"2x2x2", "8x8", "S(0),S(0),S(0)", "S(1),S(1),S(1)", 7, 8 * 7},
    /* Each element has 4 terms. An owner that has one of them receives 3; an owner without a term
     * receives 4. */
    {"2x2x2", "16x8", "P,P,S(0)", "S(0),S(0),S(0)", 0, 3 * 64 + 4 * 64},
};

static void cases_of_which_the_bound_is_known_reach_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * sizeof cases / sizeof cases[0]; i++) {
        const size_t row = i / 2;
        const tsr_mode mode = i % 2 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
        const tsr_plan_survey s = survey_of(cases[row].mesh, cases[row].shape, cases[row].from, cases[row].to, mode);
        const int64_t most = cases[row].most > 0 ? 4 * cases[row].most : -1;
        if (s.lower_bound.max != most || (most > 0 && s.bytes_received.max != most) ||
            s.lower_bound.total != 4 * cases[row].total || s.bytes_received.total != 4 * cases[row].total ||
            s.ratio != 1)
            fail_msg("%s: %lld elements at most and %lld in all, the bounds being %lld and %lld", test_case_text(),
                     (long long)s.bytes_received.max / 4, (long long)s.bytes_received.total / 4,
                     (long long)s.lower_bound.max / 4, (long long)s.lower_bound.total / 4);
        assert_int_equal(s.step_count, 1);
    }
}

static void an_all_reduce_counts_both_of_its_phases(void **state)
{
    (void)state;
    /* 4 ranks, 64 elements: each reduces 16 of which it has a term, reads 3 * 16 terms, is given 3
     * * 16 results. */
    const tsr_plan_figures f = figures_of("4", "8x8", "P", "R", 2);
    const tsr_plan_survey s = survey_of("4", "8x8", "P", "R", TSR_MODE_DIRECT);
    const tsr_cost_profile profile = tsr_cost_default();
    assert_int_equal(f.bytes_received, 4 * 96);
    assert_int_equal(f.bytes_sent, 4 * 96);
    assert_int_equal(f.bytes_kept, 4 * 16);
    assert_int_equal(f.messages_received, 3);
    assert_int_equal(f.messages_sent, 3);
    assert_int_equal(f.lower_bound, -1);
    assert_true(f.ratio == -1);
    assert_true(f.seconds == 2 * profile.inside.latency + 4 * 96 / profile.inside.bandwidth);
    assert_true(s.seconds == f.seconds);
    assert_int_equal(s.lower_bound.total, 4 * 64 * 2 * 3);
    assert_true(s.ratio == 1);
    /* A ring: floor(2 * 3 * 256 / 4), and nothing to gather. */
    assert_int_equal(f.gather_and_slice, 384);
    assert_int_equal(s.gather_and_slice.total, 4 * 384);
}

static void ranks_outside_the_meshes_and_nobody_receive_nothing(void **state)
{
    (void)state;
    const int64_t outside[] = {9, TSR_RANK_NONE};
    for (int i = 0; i < 2; i++) {
        const tsr_plan_figures f = figures_of("4", "8x8", "S(0)", "S(1)", outside[i]),
                               p = figures_of("4", "8x8", "P", "R", outside[i]);
        assert_int_equal(f.bytes_received + f.bytes_sent + f.bytes_kept + f.messages_received + f.gather_and_slice, 0);
        assert_int_equal(f.lower_bound, 0);
        assert_true(f.ratio == 1 && f.seconds == 0);
        assert_int_equal(p.lower_bound, -1);
        assert_true(p.ratio == -1);
    }
}

static void what_is_received_beyond_the_bound_shows_in_the_ratio(void **state)
{
    (void)state;
    /* Each of 3 owners reads 2 terms of all 27 elements in one step, where 2 * 2 receives of each
     * element would do. */
    static const tsr_cost_profile slow_steps = {{1.0, 1e9}, {1.0, 1e9}};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.objective = TSR_OBJECTIVE_TIME;
    options.profile = &slow_steps;
    tsr_plan *plan = plan_of("3", "27", "P", "R", &options);
    tsr_plan_survey s;
    expect_ok(tsr_plan_survey_of(plan, &s));
    assert_int_equal(s.bytes_received.total, 4 * 27 * 6);
    assert_int_equal(s.lower_bound.total, 4 * 27 * 4);
    assert_true(s.ratio == 1.5);
    tsr_plan_destroy(plan);
}

/* Bytes by item, as a visitor adds them up. */
typedef struct tally {
    int64_t bytes[2];
    size_t visited, stop_at;
} tally;

static tsr_status add_up(const tsr_plan_transfer *transfer, void *user)
{
    tally *t = user;
    t->bytes[transfer->item] += transfer->bytes;
    return ++t->visited == t->stop_at ? TSR_ERROR_UNAVAILABLE : TSR_OK;
}

static tsr_plan *batch_of_two(int64_t rank)
{
    const tsr_layout *src[] = {layout_of("2x2", "8x8", "S(0),R"), layout_of("4@2", "16", "S(0)")};
    const tsr_layout *dst[] = {layout_of("2x2", "8x8", "R,S(0)"), layout_of("4@2", "16", "R")};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = rank;
    tsr_plan *plan = NULL;
    expect_ok(tsr_plan_create_batch(2, src, dst, &options, &plan));
    for (int i = 0; i < 2; i++) {
        tsr_layout_destroy((tsr_layout *)src[i]);
        tsr_layout_destroy((tsr_layout *)dst[i]);
    }
    return plan;
}

static void moves_that_are_made_together_are_added_up(void **state)
{
    (void)state;
    /* Rank 2 is at (1,0): it has the lower half and wants the upper; of the vector it has a
     * quarter. */
    tsr_plan *plan = batch_of_two(2);
    tsr_plan_figures f;
    tsr_plan_survey s;
    tally in = {{0}, 0, 0};
    expect_ok(tsr_plan_figures_of(plan, &f));
    expect_ok(tsr_plan_visit_receives(plan, add_up, &in));
    assert_int_equal(in.bytes[0], 4 * 32);
    assert_int_equal(in.bytes[1], 4 * 12);
    assert_int_equal(f.bytes_received, 4 * 44);
    assert_int_equal(f.lower_bound, 4 * 44);
    /* One message comes from rank 0 or 1, and one each from ranks 3, 4 and 5. */
    assert_int_equal(f.messages_received, 4);
    expect_ok(tsr_plan_survey_of(plan, &s));
    assert_int_equal(s.ranks, 6);
    assert_int_equal(s.bytes_received.total, 4 * (2 * 32 + 4 * 12));
    assert_true(s.ratio == 1);
    tsr_plan_destroy(plan);
}

static void a_visitor_may_stop_the_visit(void **state)
{
    (void)state;
    tsr_plan *plan = batch_of_two(3);
    tally in = {{0}, 0, 2}, out = {{0}, 0, 1};
    assert_int_equal(tsr_plan_visit_receives(plan, add_up, &in), TSR_ERROR_UNAVAILABLE);
    assert_int_equal(tsr_plan_visit_sends(plan, add_up, &out), TSR_ERROR_UNAVAILABLE);
    assert_int_equal(in.visited, 2);
    assert_int_equal(out.visited, 1);
    tsr_plan_destroy(plan);
}

static void what_cannot_be_told_is_refused_in_words(void **state)
{
    (void)state;
    tsr_plan *plan = batch_of_two(0);
    tsr_plan_figures f;
    tsr_plan_step step;
    tsr_plan_survey survey;
    size_t length;
    char text[4];
    expect_error(tsr_plan_figures_of(NULL, &f), TSR_ERROR_ARGUMENT, "tsr_plan_figures_of: plan is NULL");
    expect_error(tsr_plan_figures_of(plan, NULL), TSR_ERROR_ARGUMENT, "tsr_plan_figures_of: out is NULL");
    expect_error(tsr_plan_step_at(NULL, 0, &step), TSR_ERROR_ARGUMENT, "tsr_plan_step_at: plan is NULL");
    expect_error(tsr_plan_step_at(plan, 0, NULL), TSR_ERROR_ARGUMENT, "tsr_plan_step_at: out is NULL");
    expect_error(tsr_plan_step_at(plan, 1, &step), TSR_ERROR_ARGUMENT, "index is 1, but the plan has 1 step");
    expect_error(tsr_plan_survey_of(NULL, &survey), TSR_ERROR_ARGUMENT, "tsr_plan_survey_of: plan is NULL");
    expect_error(tsr_plan_survey_of(plan, NULL), TSR_ERROR_ARGUMENT, "tsr_plan_survey_of: out is NULL");
    expect_error(tsr_plan_visit_receives(NULL, add_up, NULL), TSR_ERROR_ARGUMENT,
                 "tsr_plan_visit_receives: plan is NULL");
    expect_error(tsr_plan_visit_sends(plan, NULL, NULL), TSR_ERROR_ARGUMENT, "tsr_plan_visit_sends: visitor is NULL");
    expect_error(tsr_plan_describe(NULL, text, sizeof text, &length), TSR_ERROR_ARGUMENT,
                 "tsr_plan_describe: plan is NULL");
    expect_error(tsr_plan_describe(plan, NULL, 1, &length), TSR_ERROR_ARGUMENT, "tsr_plan_describe: text is NULL");
    expect_error(tsr_plan_describe(plan, text, sizeof text, NULL), TSR_ERROR_ARGUMENT,
                 "tsr_plan_describe: length is NULL");
    assert_int_equal(tsr_plan_step_count(plan), 1);
    tsr_plan_destroy(plan);
}

static void totals_beyond_63_bits_are_refused(void **state)
{
    (void)state;
    /* Of 2^60 bytes each rank receives all but its own part: 7 * 2^60 over 8 ranks, and 31 * 2^60,
     * too many, over 32.
     */
    tsr_plan *plan = plan_of("8", "268435456x1073741824", "S(0)", "R", NULL),
             *large = plan_of("32", "16777216x17179869184", "S(0)", "R", NULL);
    tsr_plan_survey survey = {.ranks = -7};
    expect_ok(tsr_plan_survey_of(plan, &survey));
    assert_int_equal(survey.bytes_received.total, 7 * (INT64_C(1) << 60));
    survey.ranks = -7;
    expect_error(tsr_plan_survey_of(large, &survey), TSR_ERROR_ARGUMENT, "more than 2^63 - 1 bytes");
    assert_int_equal(survey.ranks, -7);
    tsr_plan_destroy(plan);
    tsr_plan_destroy(large);
}

static void many_listed_ranks_are_surveyed_once_each(void **state)
{
    (void)state;
    tsr_layout *src = layout_of("3@[5,0,9]", "6x6", "S(0)"), *dst = layout_of("4@[9,2,5,7]", "6x6", "S(1)");
    tsr_plan *plan = NULL;
    tsr_plan_survey s;
    expect_ok(tsr_plan_create(src, dst, NULL, &plan));
    expect_ok(tsr_plan_survey_of(plan, &s));
    assert_int_equal(s.ranks, 5);
    /* Parts of the columns: 2, 2, 2, none. Ranks 9 and 5 have rows 4 to 6 and 0 to 2 of theirs. */
    assert_int_equal(s.bytes_received.total, 4 * (36 - 4 - 4));
    assert_int_equal(s.gather_and_slice.total, 4 * (2 * 36 + 2 * 24));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

static void same_survey(const tsr_plan_survey *a, const tsr_plan_survey *b)
{
    assert_int_equal(a->ranks, b->ranks);
    assert_int_equal(a->bytes_received.max, b->bytes_received.max);
    assert_int_equal(a->bytes_received.total, b->bytes_received.total);
    assert_int_equal(a->bytes_sent.total, b->bytes_sent.total);
    assert_int_equal(a->lower_bound.max, b->lower_bound.max);
    assert_int_equal(a->lower_bound.total, b->lower_bound.total);
    assert_int_equal(a->busiest_rank, b->busiest_rank);
    assert_true(a->ratio == b->ratio && a->seconds == b->seconds);
}

static void some_ranks_are_surveyed_like_all_and_whole_nodes_like_the_busiest(void **state)
{
    (void)state;
    /* Links between nodes carry a byte a second, and everything else costs nothing. */
    const tsr_cost_profile slow = {{0, 1e30}, {0, 1}};
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.nodes.ranks_per_node = 2;
    options.profile = &slow;
    /* Of 9 rows of 16 bytes the ranks have 2, 2, 2, 2, 1, 0. What a node lacks crosses into it
     * once: 5, 5 and 8 rows.
     */
    tsr_plan *plan = plan_of("6", "9x4", "S(0)", "R", &options);
    tsr_plan_survey all, some;
    const int64_t every[] = {5, 3, 0, 1, 2, 4, 4, 5}, second[] = {3, 2}, outside[] = {6, 100};
    expect_ok(tsr_plan_survey_of(plan, &all));
    expect_ok(tsr_plan_survey_some(plan, every, 8, &some));
    same_survey(&all, &some);
    expect_ok(tsr_plan_survey_some(plan, second, 2, &some));
    assert_int_equal(some.ranks, 2);
    assert_int_equal(some.bytes_received.total, 2 * 7 * 16);
    assert_int_equal(some.lower_bound.total, 2 * 7 * 16);
    assert_true(all.seconds == 8 * 16 && some.seconds == 5 * 16);
    expect_ok(tsr_plan_survey_some(plan, outside, 2, &some));
    assert_int_equal(some.bytes_received.total, 0);
    assert_true(some.ratio == 1 && some.seconds == 0);
    tsr_plan_destroy(plan);
    tsr_plan *reduction = plan_of("6", "9x4", "P", "R", &options);
    expect_ok(tsr_plan_survey_some(reduction, second, 2, &some));
    assert_true(some.lower_bound.total == -1 && some.lower_bound.max == -1 && some.ratio == -1);
    some.ranks = -7;
    expect_error(tsr_plan_survey_some(reduction, (const int64_t[]){0, -3}, 2, &some), TSR_ERROR_ARGUMENT,
                 "tsr_plan_survey_some: ranks[1] is -3; ranks count from 0");
    expect_error(tsr_plan_survey_some(reduction, NULL, 0, &some), TSR_ERROR_ARGUMENT,
                 "tsr_plan_survey_some: ranks is NULL");
    expect_error(tsr_plan_survey_some(NULL, every, 8, &some), TSR_ERROR_ARGUMENT, "tsr_plan_survey_some: plan is NULL");
    assert_int_equal(some.ranks, -7);
    tsr_plan_destroy(reduction);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cases_of_which_the_bound_is_known_reach_it),
        cmocka_unit_test(an_all_reduce_counts_both_of_its_phases),
        cmocka_unit_test(ranks_outside_the_meshes_and_nobody_receive_nothing),
        cmocka_unit_test(what_is_received_beyond_the_bound_shows_in_the_ratio),
        cmocka_unit_test(moves_that_are_made_together_are_added_up),
        cmocka_unit_test(a_visitor_may_stop_the_visit),
        cmocka_unit_test(what_cannot_be_told_is_refused_in_words),
        cmocka_unit_test(totals_beyond_63_bits_are_refused),
        cmocka_unit_test(many_listed_ranks_are_surveyed_once_each),
        cmocka_unit_test(some_ranks_are_surveyed_like_all_and_whole_nodes_like_the_busiest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
