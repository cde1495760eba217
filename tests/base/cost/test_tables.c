/* Tables of a cost profile: their text, what they say between their points, and plans timed by
 * them, against plain formulas. */
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES 4096

/* Whole numbers of seconds a byte, so that sums are exact. */
#define STEP    2.0
#define PIECE   0.25
#define MEETING 16.0 /* of 2 ranks */
#define KEEP    4.0  /* bytes a second */
#define COPY    2.0
#define COPY_64 1.0
#define SUM     0.5
#define PLAIN   "step=2 piece=0.25 meeting=2:16,4:64 keep@whole=1:4 copy@whole=1:2 copy@64=1:1 sum@whole=1:0.5"
#define LINKS   "inside=1e-6,1e9 between=1e-5,1e8"

static tsr_profile *parse(const char *text)
{
    tsr_profile *profile = NULL;
    if (tsr_profile_parse(text, &profile) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    return profile;
}

static void assert_prints(const char *text, const char *wanted)
{
    char printed[TEXT_BYTES];
    tsr_profile *profile = parse(text);
    assert_int_equal(tsr_profile_print(profile, NULL, 0), strlen(wanted));
    tsr_profile_print(profile, printed, sizeof printed);
    assert_string_equal(printed, wanted);
    memset(printed, '#', sizeof printed);
    assert_int_equal(tsr_profile_print(profile, printed, 8), strlen(wanted));
    assert_memory_equal(printed, wanted, 7);
    assert_memory_equal(printed + 7, "\0#", 2);
    tsr_profile_destroy(profile);
}

static void text_comes_back_a_row_a_line(void **state)
{
    (void)state;
    static const char whole[] = "inside=5e-7,1.6e10 between=5e-6,1.25e10\n"
                                "step=2e-7 piece=3e-8\n"
                                "meeting=2:1.5e-7,4:6e-6\n"
                                "copy@64=8192:2e9,524288:4e9\n"
                                "copy@4096=8192:3e9\n"
                                "copy@whole=8192:8e9\n"
                                "keep@whole=8192:3e10\n"
                                "sum@1=1:5e9";
    assert_prints(whole, whole);
    assert_prints("sum@1=1:5e9 copy@whole=8192:8e9 keep@whole=8192:3e10 # in any order\n"
                  "piece=3e-8 copy@4096=8192:3e9 meeting=2:1.5e-7 , 4:6e-6\ncopy@64=8192:2e9,524288:4e9 step=2e-7",
                  whole);
}

static void a_text_of_links_is_a_profile_without_tables(void **state)
{
    (void)state;
    tsr_profile *profile = parse("inside=1e-6,2e10");
    const tsr_cost_profile links = tsr_profile_links(profile), usual = tsr_cost_default();
    assert_false(tsr_profile_has_tables(profile));
    assert_true(links.inside.latency == 1e-6 && links.inside.bandwidth == 2e10 &&
                links.between.latency == usual.between.latency);
    tsr_profile_destroy(tsr_profile_retain(profile));
    tsr_profile_destroy(profile);
    tsr_profile_destroy(NULL);
    assert_prints("inside=1e-6,2e10", "inside=1e-6,2e10 between=5e-6,1.25e10");
    profile = parse("piece=0");
    assert_true(tsr_profile_has_tables(profile));
    tsr_profile_destroy(profile);
}

static void a_program_that_wants_links_reads_them_beside_tables(void **state)
{
    (void)state;
    tsr_cost_profile links;
    assert_int_equal(tsr_cost_parse(LINKS "\n" PLAIN, &links), TSR_OK);
    assert_true(links.inside.bandwidth == 1e9 && links.between.bandwidth == 1e8);
}

static void a_bad_text_is_refused_at_its_character(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"copies@64=1:1", "character 1: expected inside=LATENCY,BANDWIDTH or between=LATENCY,BANDWIDTH, or step=, "
                          "piece=, meeting=, copy@, keep@, sum@, call=, pass=, multiply@ or attend@, found \"c\""},
        {"step=", "character 6: expected a number of seconds, as 5e-7, found the end"},
        {"step=1,2", "character 7: expected a space or the end, found \",\""},
        {"step=1 step=1", "character 8: this number stands here twice"},
        {"meeting=0:1", "character 9: expected a number of ranks, as 4"},
        {"meeting=2", "character 10: expected \":\" and seconds, found the end"},
        {"meeting=2:1 meeting=4:1", "character 13: this row stands here twice"},
        {"meeting=2:1,2:3", "character 13: each key of a row is greater than the one before it"},
        {"copy@=1:1", "character 6: expected a run of bytes, as 64, or \"whole\""},
        {"copy@64", "character 8: expected \"=\", found the end"},
        {"copy@0=1:1", "character 6: expected a run of bytes"},
        {"copy@64=1:1 copy@64=2:1", "character 13: this row stands here twice"},
        {"sum@whole=1:1 sum@whole=2:1", "character 15: this row stands here twice"},
        {"keep@64=8192", "character 13: expected \":\" and a bandwidth"},
        {"keep@64=8192:0", "character 14: a bandwidth is more than 0"},
        {"keep@64=8192:1,4096:1", "character 16: each key of a row is greater"},
        {"keep@64=99999999999999999999:1", "character 9: expected a number of bytes, as 8192, found a number beyond"},
        {"# tables\nsum@1=1:1 x", "line 2 \"sum@1=1:1 x\", character 11: expected inside="},
        {"sum@1=1:1 sum@2=1:1 sum@3=1:1 sum@4=1:1 sum@5=1:1 sum@6=1:1 sum@7=1:1 sum@8=1:1 sum@9=1:1",
         "character 81: a kind of work has at most 8 rows"},
        {"meeting=1:1,2:1,3:1,4:1,5:1,6:1,7:1,8:1,9:1,10:1,11:1,12:1,13:1,14:1,15:1,16:1,17:1,18:1,19:1,20:1,21:1,22:1,"
         "23:1,24:1,25:1,26:1,"
         "27:1,28:1,29:1,30:1,31:1,32:1,33:1",
         "a row has at most 32 numbers"},
        {"step=1e31", "character 6: seconds are 1e30 at most"},
        {"meeting=2:1e31", "character 11: seconds are 1e30 at most"},
        {"sum@1=1:1e-31", "character 9: a rate of a row is from 1e-30 to 1e30"},
        {"sum@1=1:1e31", "character 9: a rate of a row is from 1e-30 to 1e30"},
        {"call=", "character 6: expected a number of seconds, as 5e-7, found the end"},
        {"call=1 call=1", "character 8: this number stands here twice"},
        {"pass=8:1 pass=8:1", "character 10: this row stands here twice"},
        {"multiply@whole=1:1", "character 10: expected a number of rows, as 512, found \"w\""},
        {"multiply@0=1:1", "character 10: expected a number of rows, as 512"},
        {"attend@1=1:1 attend@1=2:1", "character 14: this row stands here twice"},
        {"attend@1=1:0", "character 12: a bandwidth is more than 0"},
        {"inside=1,1 step=1", "inside.latency is 1, more than between.latency"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_profile *profile = NULL;
        if (tsr_profile_parse(cases[i].text, &profile) != TSR_ERROR_ARGUMENT)
            fail_msg("\"%s\" was not refused", cases[i].text);
        assert_null(profile);
        if (!strstr(tsr_status_message(), cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), cases[i].says);
    }
    tsr_profile *profile;
    assert_int_equal(tsr_profile_parse(NULL, &profile), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_profile_parse("", NULL), TSR_ERROR_ARGUMENT);
}

static void assert_seconds(double found, double wanted)
{
    if (!(fabs(found - wanted) <= 1e-12 * fabs(wanted)))
        fail_msg("%.17g instead of %.17g", found, wanted);
}

static void between_points_seconds_go_by_the_logarithm(void **state)
{
    (void)state;
    /* 1, 1/4 and 1/2 second a byte at 1024, 4096 and 16384 bytes. */
    tsr_profile *profile = parse("copy@64=1024:1,4096:4,16384:2 copy@256=1024:8 copy@whole=1024:16");
    static const struct {
        int64_t run;
        double touched, pace;
    } cases[] = {{64, 1, 1},
                 {64, 1024, 1},
                 {64, 4096, 0.25},
                 {64, 16384, 0.5},
                 {64, 1e15, 0.5},
                 {64, 2048, 0.625},
                 {64, 8192, 0.375},
                 {1, 4096, 0.25},
                 {256, 4096, 0.125},
                 {128, 4096, 0.1875},
                 {128, 1024, 0.5625},
                 {1 << 20, 1, 0.125},
                 {TSR_RUN_WHOLE, 1, 1.0 / 16}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_seconds(tsr_profile_work_seconds(profile, TSR_WORK_COPY, cases[i].run, cases[i].touched, 48),
                       48 * cases[i].pace);
    tsr_profile_destroy(profile);
}

static void what_is_not_measured_is_as_the_links_say(void **state)
{
    (void)state;
    tsr_profile *profile = parse("inside=0.5,4 between=1,1 copy@64=1:1 step=3");
    assert_seconds(tsr_profile_work_seconds(profile, TSR_WORK_KEEP, 64, 100, 8), 2);
    assert_seconds(tsr_profile_work_seconds(profile, TSR_WORK_SUM, TSR_RUN_WHOLE, 100, 8), 2);
    assert_seconds(tsr_profile_work_seconds(profile, TSR_WORK_COPY, TSR_RUN_WHOLE, 100, 8), 8);
    assert_seconds(tsr_profile_meeting_seconds(profile, 5), 0.5);
    assert_seconds(tsr_profile_step_seconds(profile, 1000), 3);
    tsr_profile_destroy(profile);
}

static void kernels_have_entries_of_their_own(void **state)
{
    (void)state;
    static const char text[] = "inside=5e-7,1.6e10 between=5e-6,1.25e10\n"
                               "call=4e-7\n"
                               "pass=12288:3e10,1048576:9e9\n"
                               "multiply@1=65536:8e9,16777216:4e9\n"
                               "multiply@512=4194304:1.2e11\n"
                               "attend@1=65536:5e9";
    assert_prints(text, text);
    assert_prints("attend@1=65536:5e9 multiply@512=4194304:1.2e11 multiply@1=65536:8e9,16777216:4e9 call=4e-7\n"
                  "pass=12288:3e10,1048576:9e9",
                  text);
    tsr_profile *profile = parse(text);
    assert_true(tsr_profile_has_kernels(profile));
    assert_false(tsr_profile_has_tables(profile));
    tsr_profile_destroy(profile);
    profile = parse("step=0");
    assert_false(tsr_profile_has_kernels(profile));
    assert_seconds(tsr_profile_call_seconds(profile), 0);
    tsr_profile_destroy(profile);
}

static void kernels_take_a_call_and_their_work(void **state)
{
    (void)state;
    /* 1 and 1/4 second a byte or flop at 1024 and 4096 bytes; products of 4 rows take 2 times as
     * long as those of 1 row, and so twice as many flops a second. */
    tsr_profile *profile =
        parse("call=3 pass=1024:1,4096:4 multiply@1=1024:1,4096:4 multiply@4=1024:2,4096:8 attend@2=8:2");
    static const struct {
        tsr_product product;
        int64_t least;
        double reach, pace;
    } cases[] = {{TSR_PRODUCT_MULTIPLY, 1, 1, 1},
                 {TSR_PRODUCT_MULTIPLY, 1, 4096, 0.25},
                 {TSR_PRODUCT_MULTIPLY, 1, 2048, 0.625},
                 {TSR_PRODUCT_MULTIPLY, 4, 1024, 0.5},
                 {TSR_PRODUCT_MULTIPLY, 1000, 1e9, 0.125},
                 /* 1 row takes 1 a column, 4 rows 2, so 2 rows 4/3. */
                 {TSR_PRODUCT_MULTIPLY, 2, 1024, 2.0 / 3},
                 {TSR_PRODUCT_MULTIPLY, 3, 4096, 5.0 / 36},
                 {TSR_PRODUCT_ATTEND, 1, 8, 0.5},
                 {TSR_PRODUCT_ATTEND, 7, 8, 0.5}};
    assert_seconds(tsr_profile_call_seconds(profile), 3);
    assert_seconds(tsr_profile_pass_seconds(profile, 4096), 1024);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_seconds(tsr_profile_product_seconds(profile, cases[i].product, cases[i].least, cases[i].reach, 1e30, 48),
                       48 * cases[i].pace);
    tsr_profile_destroy(profile);
}

static void kernels_that_are_not_measured_go_by_copies_and_links(void **state)
{
    (void)state;
    tsr_profile *profile = parse("inside=0.5,4 between=1,1");
    assert_seconds(tsr_profile_pass_seconds(profile, 8), 2);
    assert_seconds(tsr_profile_product_seconds(profile, TSR_PRODUCT_MULTIPLY, 1, 1e9, 8, 1), 2);
    assert_seconds(tsr_profile_product_seconds(profile, TSR_PRODUCT_ATTEND, 1, 1e9, 8, 3 * TSR_PROFILE_FLOPS), 3);
    tsr_profile_destroy(profile);
    /* A copy touches twice its bytes. */
    profile = parse("inside=0.5,4 between=1,1 keep@whole=1:2 keep@64=1:1");
    assert_seconds(tsr_profile_pass_seconds(profile, 8), 2);
    tsr_profile_destroy(profile);
}

static void a_context_tells_its_costs(void **state)
{
    (void)state;
    static const char *const texts[] = {"inside=1e-6,2e9", "inside=1e-6,2e9 call=1", "inside=1e-6,2e9 step=1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        tsr_context *context;
        options.measured = parse(texts[i]);
        assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
        assert_true(tsr_context_links(context).inside.bandwidth == 2e9);
        assert_true((tsr_context_profile(context) != NULL) == (i > 0));
        tsr_context_destroy(context);
        tsr_profile_destroy(options.measured);
    }
    assert_true(tsr_context_links(NULL).inside.bandwidth == tsr_cost_default().inside.bandwidth);
    assert_null(tsr_context_profile(NULL));
}

/* By links two latencies and the bytes; by tables two meetings, and copies at their rate. */
static void exchanges_are_timed_by_links_or_tables(void **state)
{
    (void)state;
    static const char *const texts[] = {"inside=0.5,4 between=1,1",
                                        "inside=0.5,4 between=1,1 meeting=2:3 copy@whole=1:2"};
    static const double seconds[] = {3, 10};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        tsr_context *context;
        options.measured = parse(texts[i]);
        assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
        assert_seconds(tsr_context_exchange_seconds(context, 2, 2, 8), seconds[i]);
        tsr_context_destroy(context);
        tsr_profile_destroy(options.measured);
    }
}

static void meetings_of_more_ranks_grow_as_they_did_last(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ranks;
        double seconds;
    } cases[] = {{"meeting=2:1,4:3", 1, 1},       {"meeting=2:1,4:3", 2, 1},  {"meeting=2:1,4:3", 3, 2},
                 {"meeting=2:1,4:3", 4, 3},       {"meeting=2:1,4:3", 16, 7}, {"meeting=2:1,4:3", 1048576, 39},
                 {"meeting=4:3", 64, 3},          {"meeting=2:3,4:1", 3, 2},  {"meeting=2:3,4:1", 64, 1},
                 {"meeting=2:1,4:3,8:3", 1024, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_profile *profile = parse(cases[i].text);
        assert_seconds(tsr_profile_meeting_seconds(profile, cases[i].ranks), cases[i].seconds);
        tsr_profile_destroy(profile);
    }
}

/* f32 of 64 columns over 2 ranks. */
typedef struct question {
    const char *from, *to;
    int64_t rows;
    tsr_mode mode;
    tsr_objective objective;
} question;

static tsr_plan *plan_by(tsr_context *context, const question *q, const char *mesh_text, const char *profile_text,
                         const tsr_cost_profile *links)
{
    const int64_t shape[] = {q->rows, 64};
    tsr_profile *profile = profile_text ? parse(profile_text) : NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_layout *from, *to;
    tsr_mesh *mesh;
    tsr_plan *plan = NULL;
    options.mode = q->mode;
    options.objective = q->objective;
    options.rank = 1;
    options.measured = profile;
    options.profile = links;
    assert_int_equal(tsr_mesh_parse(NULL, context, mesh_text, &mesh), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, q->from, 2, shape, TSR_F32, &from), TSR_OK);
    assert_int_equal(tsr_layout_parse(mesh, q->to, 2, shape, TSR_F32, &to), TSR_OK);
    if (tsr_plan_create(from, to, &options, &plan) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_profile_destroy(profile);
    tsr_layout_destroy(from);
    tsr_layout_destroy(to);
    tsr_mesh_destroy(mesh);
    return plan;
}

static double seconds_of(const tsr_plan *plan)
{
    tsr_plan_figures figures;
    assert_int_equal(tsr_plan_figures_of(plan, &figures), TSR_OK);
    return figures.seconds;
}

static void plans_are_timed_by_tables(void **state)
{
    (void)state;
    /* A shard of S(0) has 32 rows of 256 bytes, one of S(1) 64 rows of 128 bytes; "copy@64" counts
     * for runs of 128 bytes. */
    const double all = 64 * 256, half = all / 2, quarter = all / 4;
    const struct {
        question q;
        double seconds;
    } cases[] = {
        {{"S(0)", "S(1)", 64, TSR_MODE_DIRECT, 0}, STEP + 2 * PIECE + 2 * MEETING + quarter / KEEP + quarter / COPY_64},
        {{"S(1)", "S(0)", 64, TSR_MODE_MESSAGE, 0}, STEP + 2 * PIECE + MEETING + quarter / KEEP + quarter / COPY_64},
        {{"S(0)", "R", 64, TSR_MODE_DIRECT, 0}, STEP + 2 * PIECE + 2 * MEETING + half / KEEP + half / COPY},
        /* all bytes fit into the size that peers read in one meeting */
        {{"S(0)", "R", 8, TSR_MODE_DIRECT, 0}, STEP + 2 * PIECE + MEETING + 1024 / KEEP + 1024 / COPY},
        {{"R", "S(0)", 64, TSR_MODE_DIRECT, 0}, STEP + PIECE + half / KEEP},
        {{"R", "R", 64, TSR_MODE_MESSAGE, 0}, STEP + PIECE + all / KEEP},
        {{"P", "S(0)", 64, TSR_MODE_DIRECT, 0}, STEP + PIECE + 2 * MEETING + 3 * half / SUM},
        {{"P", "S(1)", 64, TSR_MODE_MESSAGE, 0}, STEP + PIECE + MEETING + 3 * half / SUM},
        /* The first reduces everything on each rank; the second a half on each rank, into both
         * results. */
        {{"P", "R", 64, TSR_MODE_DIRECT, 0}, STEP + PIECE + 2 * MEETING + 3 * all / SUM},
        {{"P", "R", 1024, TSR_MODE_DIRECT, 0}, STEP + PIECE + 2 * MEETING + 16 * 4 * half / SUM},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_plan *plan = plan_by(NULL, &cases[i].q, "2", LINKS " " PLAIN, NULL);
        tsr_plan_survey survey;
        assert_int_equal(tsr_plan_survey_of(plan, &survey), TSR_OK);
        print_message("%s -> %s, %d rows\n", cases[i].q.from, cases[i].q.to, (int)cases[i].q.rows);
        assert_seconds(seconds_of(plan), cases[i].seconds);
        assert_seconds(survey.seconds, cases[i].seconds);
        tsr_plan_destroy(plan);
    }
}

static void the_slowest_rank_counts_and_nobody_takes_no_time(void **state)
{
    (void)state;
    /* Rank 0 has all rows. */
    const question all_to_one = {"S(0;sizes=0,64)", "S(0;sizes=64,0)", 64, TSR_MODE_DIRECT, 0};
    tsr_plan *plan = plan_by(NULL, &all_to_one, "2", PLAIN, NULL);
    tsr_plan_survey survey;
    assert_int_equal(tsr_plan_survey_of(plan, &survey), TSR_OK);
    assert_seconds(seconds_of(plan), STEP + 2 * MEETING);
    assert_seconds(survey.seconds, STEP + PIECE + 2 * MEETING + 64 * 256 / COPY);
    tsr_plan_destroy(plan);
    const question elsewhere = {"R", "S(0)", 64, TSR_MODE_DIRECT, 0};
    plan = plan_by(NULL, &elsewhere, "2@2", PLAIN, NULL);
    assert_seconds(seconds_of(plan), 0);
    tsr_plan_destroy(plan);
}

static void what_is_chosen_in_least_time_goes_by_tables(void **state)
{
    (void)state;
    /* Of 3 terms each owner reads 2 of others and all results, or a third of them in a second step.
     * By messages that is given as copies. */
    const question q = {"P", "R", 6144, TSR_MODE_MESSAGE, TSR_OBJECTIVE_TIME};
    const int64_t shard = 6144 * 256;
    tsr_plan *plan = plan_by(NULL, &q, "3", "meeting=2:1000 sum@1=1:1e9 copy@1=1:1e9", NULL);
    assert_int_equal(tsr_plan_bytes_received(plan), 2 * shard);
    tsr_plan_destroy(plan);
    plan = plan_by(NULL, &q, "3", "meeting=2:1e-6 sum@1=1:1e9 copy@1=1:1e9", NULL);
    assert_int_equal(tsr_plan_bytes_received(plan), 2 * shard / 3 + 2 * shard / 3);
    tsr_plan_destroy(plan);
    plan = plan_by(NULL, &q, "3", "meeting=2:1e-6 sum@1=1:1e9 copy@1=1:1e6", NULL);
    assert_int_equal(tsr_plan_bytes_received(plan), 2 * shard);
    tsr_plan_destroy(plan);
}

static const char *give_tables(void *user, const char *name)
{
    return strcmp(name, "TSR_COST") == 0 ? user : NULL;
}

static double seconds_in(const tsr_context_options *options, const char *profile, const tsr_cost_profile *links)
{
    const question q = {"S(0)", "R", 64, TSR_MODE_DIRECT, 0};
    tsr_context *context;
    assert_int_equal(tsr_context_create(options, &context), TSR_OK);
    tsr_plan *plan = plan_by(context, &q, "2", profile, links);
    const double seconds = seconds_of(plan);
    tsr_plan_destroy(plan);
    tsr_context_destroy(context);
    return seconds;
}

static void a_plan_takes_its_options_before_the_variable_before_the_context(void **state)
{
    (void)state;
    const tsr_cost_profile links = {{3, 4096}, {5, 1}};
    char variable[] = "step=7 meeting=2:0 keep@1=1:1e30 copy@1=1:1e30";
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT, named = options;
    tsr_profile *given = parse("step=9 meeting=2:0 keep@1=1:1e30 copy@1=1:1e30");
    options.measured = given;
    options.profile = &links;
    named = options;
    named.environment = give_tables;
    named.environment_user = variable;
    assert_seconds(seconds_in(&options, NULL, NULL), 9);
    assert_seconds(seconds_in(&named, NULL, NULL), 7);
    assert_seconds(seconds_in(&named, "step=11 meeting=2:0 keep@1=1:1e30 copy@1=1:1e30", NULL), 11);
    assert_seconds(seconds_in(&named, "step=11 meeting=2:0 keep@1=1:1e30 copy@1=1:1e30", &links), 11);
    assert_seconds(seconds_in(&named, NULL, &links), 3 + 2);
    assert_seconds(seconds_in(&named, "inside=3,4096 between=5,1", NULL), 3 + 2);
    strcpy(variable, "inside=3,4096 between=5,1");
    assert_seconds(seconds_in(&named, NULL, NULL), 3 + 2);
    strcpy(variable, "step=1 step=2");
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(&named, &context), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "TSR_COST: cost profile \"step=1 step=2\", character 8"));
    tsr_profile_destroy(given);
}

static void links_between_nodes_count_where_they_take_longer(void **state)
{
    (void)state;
    const int64_t shape[] = {64, 64};
    for (int slow = 0; slow < 2; slow++) {
        tsr_profile *profile = parse(slow ? "between=50,1 inside=0,1 " PLAIN : "between=50,1e300 inside=0,1 " PLAIN);
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        tsr_layout *from, *to;
        tsr_mesh *mesh;
        tsr_plan *plan;
        tsr_plan_survey survey;
        options.nodes.ranks_per_node = 1;
        options.measured = profile;
        assert_int_equal(tsr_mesh_parse(NULL, NULL, "2", &mesh), TSR_OK);
        assert_int_equal(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &from), TSR_OK);
        assert_int_equal(tsr_layout_parse(mesh, "R", 2, shape, TSR_F32, &to), TSR_OK);
        assert_int_equal(tsr_plan_create(from, to, &options, &plan), TSR_OK);
        assert_int_equal(tsr_plan_survey_of(plan, &survey), TSR_OK);
        assert_seconds(survey.seconds, slow ? 50 + 8192 : STEP + 2 * PIECE + 2 * MEETING + 8192 / KEEP + 8192 / COPY);
        tsr_plan_destroy(plan);
        tsr_layout_destroy(from);
        tsr_layout_destroy(to);
        tsr_mesh_destroy(mesh);
        tsr_profile_destroy(profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_back_a_row_a_line),
        cmocka_unit_test(a_text_of_links_is_a_profile_without_tables),
        cmocka_unit_test(a_program_that_wants_links_reads_them_beside_tables),
        cmocka_unit_test(a_bad_text_is_refused_at_its_character),
        cmocka_unit_test(between_points_seconds_go_by_the_logarithm),
        cmocka_unit_test(what_is_not_measured_is_as_the_links_say),
        cmocka_unit_test(kernels_have_entries_of_their_own),
        cmocka_unit_test(kernels_take_a_call_and_their_work),
        cmocka_unit_test(kernels_that_are_not_measured_go_by_copies_and_links),
        cmocka_unit_test(a_context_tells_its_costs),
        cmocka_unit_test(exchanges_are_timed_by_links_or_tables),
        cmocka_unit_test(meetings_of_more_ranks_grow_as_they_did_last),
        cmocka_unit_test(plans_are_timed_by_tables),
        cmocka_unit_test(the_slowest_rank_counts_and_nobody_takes_no_time),
        cmocka_unit_test(what_is_chosen_in_least_time_goes_by_tables),
        cmocka_unit_test(a_plan_takes_its_options_before_the_variable_before_the_context),
        cmocka_unit_test(links_between_nodes_count_where_they_take_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
