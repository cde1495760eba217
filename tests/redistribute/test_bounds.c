/* Short texts that ask for vast lists or loops are refused before memory is taken, in a sentence
 * with the layouts and the bound. */
#include "counted_memory.h"
#include "layouts.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ENTRIES = 100000, MOST_BYTES = 32 << 20 };

/* One move as text; `to_mesh` NULL: the same mesh. */
typedef struct vast {
    const char *mesh, *shape, *from, *to_mesh, *to;
    int64_t ranks_per_node, rank;
    tsr_mode mode;
} vast;

static const vast cases[] = {
    /* Runs of one dim that are in no regular order, and products of two. */
    {"2", "2000000000", "S(0;interleave=333333333)", NULL, "R", 0, 0, TSR_MODE_DIRECT},
    {"2", "2000000000", "R", NULL, "S(0;interleave=333333333)", 0, 1, TSR_MODE_DIRECT},
    {"3x3", "1000000x1000000", "S(0;interleave=100000),S(1;interleave=100000)", NULL, "R,R", 0, 5, TSR_MODE_DIRECT},
    {"2x2", "2000000000", "S(0;interleave=333333333),R", NULL, "R,S(0)", 0, 0, TSR_MODE_DIRECT},
    {"1000000", "1000000000", "S(0;blocks=300000000,300000000,400000000)", NULL, "R", 0, 0, TSR_MODE_DIRECT},
    /* Peers, of whom some rank has many: senders, receivers, contributors, owners. */
    {"2000000000", "2000000000", "S(0)", NULL, "R", 0, 7, TSR_MODE_DIRECT},
    {"2000000000", "2000000000", "S(0)", NULL, "R", 0, 7, TSR_MODE_MESSAGE},
    {"4", "4", "S(0)", "1000000000@4", "R", 0, 0, TSR_MODE_DIRECT},
    {"30000x30000", "30000x30000", "P,P", NULL, "R,R", 0, 0, TSR_MODE_DIRECT},
    {"30000x30000", "30000x30000", "P,P", NULL, "S(0),S(1)", 0, 0, TSR_MODE_MESSAGE},
    {"1000000000", "8", "P", "1000000000@500000000", "R", 0, 600000000, TSR_MODE_DIRECT},
    {"1000000000", "8", "P", "1000000000@500000000", "S(0)", 0, 500000000, TSR_MODE_DIRECT},
    /* Loops over a node's ranks. */
    {"1000x1000000", "1000000", "S(0),R", NULL, "R,R", 500000000, 0, TSR_MODE_DIRECT},
    {"1000x1000000", "1000000", "P,R", NULL, "R,R", 500000000, 0, TSR_MODE_DIRECT},
};

static tsr_context *bounded(counted_memory *memory, size_t entries)
{
    tsr_context_options options = counted_options(memory);
    options.plan_entries = entries;
    tsr_context *context = NULL;
    expect_ok(tsr_context_create(&options, &context));
    return context;
}

typedef struct move {
    tsr_layout *src, *dst;
} move;

static move move_of(tsr_context *context, const vast *v)
{
    return (move){layout_in(context, v->mesh, v->shape, v->from),
                  layout_in(context, v->to_mesh ? v->to_mesh : v->mesh, v->shape, v->to)};
}

static void move_end(const move *m)
{
    tsr_layout_destroy(m->src);
    tsr_layout_destroy(m->dst);
}

static tsr_plan_options options_of(const vast *v)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = v->rank;
    options.mode = v->mode;
    options.nodes.ranks_per_node = v->ranks_per_node;
    return options;
}

/* The sentence names the call, the layouts, the option and the bound. */
static void expect_refused(tsr_status status, const char *call, const vast *v, const char *bound)
{
    expect_error(status, TSR_ERROR_ARGUMENT, call);
    expect_error(status, TSR_ERROR_ARGUMENT, v->from);
    expect_error(status, TSR_ERROR_ARGUMENT, v->mesh);
    expect_error(status, TSR_ERROR_ARGUMENT, "plan_entries (TSR_PLAN_ENTRIES)");
    expect_error(status, TSR_ERROR_ARGUMENT, bound);
}

static void expect_little(size_t bytes)
{
    if (bytes > MOST_BYTES)
        fail_msg("%zu bytes were asked for: %s", bytes, test_case_text());
}

static void vast_plans_are_refused_before_memory_is_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const vast *v = &cases[i];
        counted_memory memory = {0};
        tsr_context *context = bounded(&memory, ENTRIES);
        const move m = move_of(context, v);
        const tsr_plan_options options = options_of(v);
        const size_t before = memory.bytes;
        tsr_plan *plan = NULL;
        test_case("%s of %s on %s to %s, rank %lld", v->from, v->shape, v->mesh, v->to, (long long)v->rank);
        expect_refused(tsr_plan_create(m.src, m.dst, &options, &plan), "tsr_plan_create", v, "100000");
        assert_null(plan);
        expect_little(memory.bytes - before);
        move_end(&m);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

/* Every text is planned for no rank and saved. Loading it for a rank is bounded by the loader's
 * context. */
static void saved_plans_are_refused_alike(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const vast *v = &cases[i];
        counted_memory memory = {0};
        tsr_context *context = bounded(&memory, ENTRIES);
        const move m = move_of(context, v);
        tsr_plan_options options = options_of(v);
        tsr_plan *plan = NULL;
        unsigned char bytes[4096];
        size_t size = 0;
        test_case("saved %s of %s on %s to %s, rank %lld", v->from, v->shape, v->mesh, v->to, (long long)v->rank);
        options.rank = TSR_RANK_NONE;
        expect_ok(tsr_plan_create(m.src, m.dst, &options, &plan));
        expect_ok(tsr_plan_save(plan, bytes, sizeof bytes, &size));
        tsr_plan_destroy(plan);
        const size_t before = memory.bytes;
        plan = NULL;
        expect_refused(tsr_plan_load(context, bytes, size, v->rank, &plan), "tsr_plan_load", v, "100000");
        assert_null(plan);
        expect_little(memory.bytes - before);
        move_end(&m);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

/* The result of a survey, and the bytes that it has allocated. */
static tsr_status survey_of(const vast *v, tsr_plan_survey *survey, size_t *bytes)
{
    counted_memory memory = {0};
    tsr_context *context = bounded(&memory, ENTRIES);
    const move m = move_of(context, v);
    tsr_plan_options options = options_of(v);
    tsr_plan *plan = NULL;
    options.rank = TSR_RANK_NONE;
    test_case("survey of %s of %s on %s to %s", v->from, v->shape, v->mesh, v->to);
    expect_ok(tsr_plan_create(m.src, m.dst, &options, &plan));
    const size_t before = memory.bytes;
    const tsr_status status = tsr_plan_survey_of(plan, survey);
    *bytes = memory.bytes - before;
    tsr_plan_destroy(plan);
    move_end(&m);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
    return status;
}

static void vast_surveys_are_refused(void **state)
{
    (void)state;
    static const vast surveyed[] = {
        {"2000000000", "4", "R", NULL, "S(0)", 0, 0, TSR_MODE_DIRECT},
        {"3000x3000", "3000x3000", "P,S(0)", NULL, "S(0),R", 0, 0, TSR_MODE_DIRECT},
        {"9000", "9000", "S(0)", NULL, "R", 0, 0, TSR_MODE_DIRECT},
        {"120x120", "3000x3000", "P,P", NULL, "S(0),S(1)", 0, 0, TSR_MODE_DIRECT},
    };
    for (size_t i = 0; i < sizeof surveyed / sizeof *surveyed; i++) {
        tsr_plan_survey survey;
        size_t bytes;
        expect_refused(survey_of(&surveyed[i], &survey, &bytes), "tsr_plan_survey_of", &surveyed[i], "16 times");
        expect_little(bytes);
    }
}

/* A rank that has far more to do than the others does not stand for them. */
static void a_survey_of_a_few_large_plans_is_made(void **state)
{
    (void)state;
    static const vast gathers[] = {
        {"20000", "20000", "S(0)", "3@10000", "R", 0, 0, TSR_MODE_DIRECT},
        {"20001", "20001", "S(0)", "5@[0,5000,10000,15000,20000]", "R", 0, 0, TSR_MODE_DIRECT},
        {"20001", "20001", "S(0)", "8@[0,2857,5714,8571,11428,14286,17143,20000]", "R", 0, 0, TSR_MODE_DIRECT},
    };
    for (size_t i = 0; i < sizeof gathers / sizeof *gathers; i++) {
        tsr_plan_survey survey;
        size_t bytes;
        expect_ok(survey_of(&gathers[i], &survey, &bytes));
        assert_int_equal(survey.bytes_received.total, atoll(gathers[i].to_mesh) * (atoll(gathers[i].mesh) - 1) * 4);
    }
}

static void vast_meshes_are_not_relabelled(void **state)
{
    (void)state;
    static const vast relabelled[] = {
        {"2000000000", "4", "R", NULL, "S(0)", 0, 0, TSR_MODE_DIRECT},
        {"2", "2000000000", "S(0;interleave=333333333)", NULL, "S(0)", 0, 0, TSR_MODE_DIRECT},
        {"2", "4", "R", "2000000000", "S(0)", 0, 0, TSR_MODE_DIRECT},
    };
    for (size_t i = 0; i < sizeof relabelled / sizeof *relabelled; i++) {
        counted_memory memory = {0};
        tsr_context *context = bounded(&memory, ENTRIES);
        const move m = move_of(context, &relabelled[i]);
        tsr_layout *better = NULL;
        expect_refused(tsr_layout_relabel(m.src, m.dst, &better, NULL), "tsr_layout_relabel", &relabelled[i], "100000");
        assert_null(better);
        expect_little(memory.bytes);
        move_end(&m);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

static void long_lists_of_intervals_are_refused(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = bounded(&memory, ENTRIES);
    const vast v = {.mesh = "2", .from = "S(0;interleave=333333333)"};
    tsr_layout *layout = layout_in(context, v.mesh, "2000000000", v.from);
    const int64_t coordinate[] = {1};
    tsr_interval first[4];
    size_t count = 7;
    expect_refused(tsr_layout_intervals(layout, coordinate, 0, first, 4, &count), "tsr_layout_intervals", &v, "100000");
    assert_int_equal(count, 7);
    tsr_layout_destroy(layout);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

/* Rank 0 would receive from all ranks, which its context does not allow; the others only send. */
static tsr_status gather_at_one(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {64}, all[8] = {64}, local[] = {8};
    const tsr_status wanted = tsr_comm_rank(comm) == 0 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER;
    const char *const says =
        tsr_comm_rank(comm) == 0 ? "tsr_redistribute: i32 64" : "rank 0 failed: tsr_redistribute: i32 64";
    tsr_placement cut = tsr_shard(0), one = tsr_shard(0), whole = tsr_shard(0);
    tsr_mesh *mesh = NULL;
    tsr_layout *src = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    int32_t have[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const tsr_tensor given = tsr_tensor_contiguous(have, TSR_I32, 1, local);
    one.sizes = all;
    one.size_count = 8;
    whole.balanced = 1;
    tsr_status status = tsr_mesh_parse(comm, NULL, "8", &mesh);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, &cut, 1, shape, TSR_I32, &src);
    if (status == TSR_OK)
        status = tsr_dtensor_from_local(&given, src, NULL, &x);
    if (status == TSR_OK)
        *(bool *)arg = tsr_redistribute(x, &one, &y) != wanted || y || !strstr(tsr_status_message(), says) ||
                       !strstr(tsr_status_message(), "plan_entries");
    if (status == TSR_OK)
        status = tsr_redistribute(x, &whole, &y); /* the communicator is as usable as before */
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(src);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status gather_at_one_of(tsr_comm *comm, void *arg)
{
    return gather_at_one(comm, (bool *)arg + tsr_comm_rank(comm));
}

static void a_rank_beyond_its_bound_does_not_keep_its_peers_waiting(void **state)
{
    (void)state;
    counted_memory memory = {0};
    bool wrong[8] = {false};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = bounded(&memory, 12);
    expect_ok(tsr_threads_run(8, gather_at_one_of, wrong, &options));
    for (int rank = 0; rank < 8; rank++)
        assert_false(wrong[rank]);
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

/* All shards have equal parts of the blocks, which are counted without being listed, however many
 * there are. */
static void equal_blocks_are_counted_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *mesh, *shape, *placements;
        int64_t coordinate[2];
        size_t count;
        tsr_interval first[2];
    } rows[] = {
        {"2", "2000000000", "S(0;interleave=1000000000)", {1}, 1000000000, {{1, 2}, {3, 4}}},
        {"2x2",
         "4000000000",
         "S(0;interleave=1000000000),S(0)",
         {0, 1},
         500000000,
         {{2000000000, 2000000002}, {2000000004, 2000000006}}},
        {"2x2",
         "4000000000",
         "S(0),S(0;interleave=500000000)",
         {1, 0},
         500000000,
         {{2000000000, 2000000002}, {2000000004, 2000000006}}},
        {"2x2",
         "8000000000",
         "S(0;interleave=1000000000),S(0;interleave=1000000000)",
         {0, 1},
         1000000000,
         {{2, 4}, {10, 12}}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        counted_memory memory = {0};
        tsr_context *context = bounded(&memory, ENTRIES);
        tsr_layout *layout = layout_in(context, rows[i].mesh, rows[i].shape, rows[i].placements);
        tsr_interval first[2];
        size_t count = 0;
        test_case("%s of %s on %s", rows[i].placements, rows[i].shape, rows[i].mesh);
        expect_ok(tsr_layout_intervals(layout, rows[i].coordinate, 0, first, 2, &count));
        assert_int_equal(count, rows[i].count);
        assert_memory_equal(first, rows[i].first, sizeof first);
        tsr_layout_destroy(layout);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

/* The least bound with which `v` is planned; every smaller bound refuses it. */
static void a_bound_refuses_exactly_what_exceeds_it(void **state)
{
    (void)state;
    static const vast small = {"3x2", "12x5", "S(0;interleave=2),R", NULL, "S(1),S(0)", 0, 3, TSR_MODE_MESSAGE};
    bool fitted = false;
    for (size_t entries = 1; entries < 200; entries++) {
        counted_memory memory = {0};
        tsr_context *context = bounded(&memory, entries);
        const move m = move_of(context, &small);
        const tsr_plan_options options = options_of(&small);
        tsr_plan *plan = NULL;
        const tsr_status status = tsr_plan_create(m.src, m.dst, &options, &plan);
        if (status != TSR_OK)
            expect_refused(status, "tsr_plan_create", &small, "plan_entries");
        assert_true(status == TSR_OK || !fitted);
        assert_true(status != TSR_OK || entries > 5);
        fitted = status == TSR_OK;
        tsr_plan_destroy(plan);
        move_end(&m);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
    assert_true(fitted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vast_plans_are_refused_before_memory_is_taken),
        cmocka_unit_test(saved_plans_are_refused_alike),
        cmocka_unit_test(vast_surveys_are_refused),
        cmocka_unit_test(a_survey_of_a_few_large_plans_is_made),
        cmocka_unit_test(vast_meshes_are_not_relabelled),
        cmocka_unit_test(long_lists_of_intervals_are_refused),
        cmocka_unit_test(equal_blocks_are_counted_at_once),
        cmocka_unit_test(a_rank_beyond_its_bound_does_not_keep_its_peers_waiting),
        cmocka_unit_test(a_bound_refuses_exactly_what_exceeds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
