/* Executing plans: what tsr_plan_prepare() and tsr_plan_execute() refuse. A refusal leaves memory
 * and communicator as they were. */
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <tessera/explain.h>
#include <tessera/sys/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SIDE = 8, MOST = SIDE * SIDE };

/* A plan between two layouts of an f32 tensor on "2", of 8x8 or less, with this rank's buffers. */
typedef struct fixture {
    tsr_comm *comm;
    tsr_layout *src_layout, *dst_layout;
    tsr_plan *plan;
    float src_values[MOST], dst_values[MOST];
    tsr_tensor src, dst;
    void *workspace;
    size_t bytes;
} fixture;

static tsr_status fixture_make_of(fixture *f, tsr_comm *comm, const char *shape, const char *from, const char *to,
                                  tsr_mode mode)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = mode;
    *f = (fixture){.comm = comm};
    TSR_TRY(layout_over(comm, "2", shape, from, TSR_F32, &f->src_layout));
    TSR_TRY(layout_over(comm, "2", shape, to, TSR_F32, &f->dst_layout));
    TSR_TRY(tsr_plan_create(f->src_layout, f->dst_layout, &options, &f->plan));
    TSR_TRY(shard_over(f->src_layout, f->src_values, &f->src));
    TSR_TRY(shard_over(f->dst_layout, f->dst_values, &f->dst));
    for (int i = 0; i < MOST; i++)
        f->dst_values[i] = -7.0f;
    f->workspace = workspace_for(f->plan, &f->bytes);
    return TSR_OK;
}

static tsr_status fixture_make(fixture *f, tsr_comm *comm, const char *from, const char *to, tsr_mode mode)
{
    return fixture_make_of(f, comm, "8x8", from, to, mode);
}

static tsr_status fixture_execute(const fixture *f, const tsr_tensor *src, const tsr_tensor *dst)
{
    return tsr_plan_execute(f->plan, f->comm, src, dst, f->workspace, f->bytes, NULL);
}

static void fixture_destroy(fixture *f)
{
    tsr_plan_destroy(f->plan);
    tsr_layout_destroy(f->src_layout);
    tsr_layout_destroy(f->dst_layout);
    free(f->workspace);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", *(const tsr_mode *)arg));
    CHECK_ERROR(fixture_execute(&f, &f.src, &f.dst), TSR_ERROR_STATE, "prepare");
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    TSR_TRY(tsr_plan_prepare(f.plan, comm)); /* preparing again does no harm */
    CHECK_ERROR(fixture_execute(&f, NULL, &f.dst), TSR_ERROR_ARGUMENT, "src");
    CHECK_ERROR(fixture_execute(&f, &f.src, NULL), TSR_ERROR_ARGUMENT, "dst");
    tsr_tensor bad = f.src;
    bad.shape[0] = 3;
    CHECK_ERROR(fixture_execute(&f, &bad, &f.dst), TSR_ERROR_ARGUMENT, "4x8");
    bad = f.dst;
    bad.ndim = 1;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "dst");
    bad = f.dst;
    bad.dtype = TSR_I32;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "i32");
    bad = f.dst;
    bad.device.index = 1;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "device");
    bad = f.dst;
    bad.data = NULL;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "dst");
    bad = f.dst;
    bad.strides[0] = -8;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "-8");
    bad.strides[0] = 2;
    bad.strides[1] = 1;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT,
                "dst: strides 2,1 make elements of shape 8x4 share memory");
    bad.strides[1] = 0;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "dst: stride 0 of dim 1");
    bad = f.dst;
    bad.data = f.src_values;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "overlap");
    bad.data = f.src_values + 5;
    CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "overlap");
    if (f.bytes > 0) {
        CHECK_ERROR(tsr_plan_execute(f.plan, comm, &f.src, &f.dst, f.workspace, f.bytes - 1, NULL), TSR_ERROR_ARGUMENT,
                    "workspace");
        CHECK_ERROR(tsr_plan_execute(f.plan, comm, &f.src, &f.dst, NULL, f.bytes, NULL), TSR_ERROR_ARGUMENT,
                    "workspace");
    }
    CHECK_ERROR(tsr_plan_execute(f.plan, comm, &f.src, &f.dst, f.workspace, f.bytes, &f), TSR_ERROR_ARGUMENT,
                "src: stream is 0x");
    bad = f.dst;
    tsr_tensor elsewhere = f.src;
    bad.device.index = elsewhere.device.index = 3;
    CHECK_ERROR(fixture_execute(&f, &elsewhere, &bad), TSR_ERROR_ARGUMENT,
                "src: device is host:3, but there is one host");
    CHECK_ERROR(tsr_plan_execute(NULL, comm, &f.src, &f.dst, NULL, 0, NULL), TSR_ERROR_ARGUMENT, "plan");
    CHECK_ERROR(tsr_plan_execute(f.plan, NULL, &f.src, &f.dst, f.workspace, f.bytes, NULL), TSR_ERROR_ARGUMENT, "comm");
    CHECK_ERROR(tsr_plan_prepare(NULL, comm), TSR_ERROR_ARGUMENT, "plan");
    CHECK_ERROR(tsr_plan_prepare(f.plan, NULL), TSR_ERROR_ARGUMENT, "comm");
    for (int i = 0; i < MOST; i++)
        CHECK(f.dst_values[i] == -7.0f);
    TSR_TRY(fixture_execute(&f, &f.src, &f.dst));
    CHECK(f.dst_values[0] == 0.0f && f.dst_values[SIDE * SIDE / 2] == -7.0f);
    fixture_destroy(&f);
    return TSR_OK;
}

static void what_does_not_fit_a_plan_is_refused_by_a_sentence(void **state)
{
    (void)state;
    for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
        test_case("refusals, mode %d", (int)mode);
        run_ranks(2, refuse, &mode);
    }
}

static tsr_status refuse_one(tsr_comm *comm, void *arg)
{
    const int odd = *(const int *)arg, rank = tsr_comm_rank(comm);
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", TSR_MODE_DIRECT));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    tsr_tensor bad = f.dst;
    bad.dtype = TSR_I32;
    if (rank == odd)
        CHECK_ERROR(fixture_execute(&f, &f.src, &bad), TSR_ERROR_ARGUMENT, "i32");
    else
        CHECK_ERROR(fixture_execute(&f, &f.src, &f.dst), TSR_ERROR_PEER, odd == 0 ? "rank 0" : "rank 1");
    for (int i = 0; i < MOST; i++)
        CHECK(f.dst_values[i] == -7.0f);
    TSR_TRY(fixture_execute(&f, &f.src, &f.dst));
    fixture_destroy(&f);
    return TSR_OK;
}

static void one_ranks_bad_tensor_fails_the_others_and_breaks_nothing(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++) {
        test_case("rank %d brings a bad tensor", odd);
        run_ranks(2, refuse_one, &odd);
    }
}

typedef struct odd_one {
    tsr_mode mode;
    int rank, fault;
} odd_one;

/* A device that only looks like the host, and elements that share memory, are faults of one rank.
 * The other rank is told. */
static tsr_status refuse_odd_one(tsr_comm *comm, void *arg)
{
    static const char *const words[] = {"dst: strides 1,1", "src: stream is", "src: device is host:2"};
    const odd_one *o = arg;
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", o->mode));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    tsr_tensor src = f.src, dst = f.dst;
    if (o->fault == 0)
        dst.strides[0] = 1;
    if (o->fault == 2)
        src.device.index = 2;
    void *const stream = o->fault == 1 ? &f : NULL;
    if (tsr_comm_rank(comm) == o->rank)
        CHECK_ERROR(tsr_plan_execute(f.plan, comm, &src, &dst, f.workspace, f.bytes, stream), TSR_ERROR_ARGUMENT,
                    words[o->fault]);
    else
        CHECK_ERROR(fixture_execute(&f, &f.src, &f.dst), TSR_ERROR_PEER, words[o->fault]);
    for (int i = 0; i < MOST; i++)
        CHECK(f.dst_values[i] == -7.0f);
    TSR_TRY(fixture_execute(&f, &f.src, &f.dst));
    fixture_destroy(&f);
    return TSR_OK;
}

static void what_only_looks_like_the_host_is_refused_and_peers_are_told(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        odd_one o = {i & 1 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT, i >> 1 & 1, i >> 2};
        test_case("fault %d of rank %d, mode %d", o.fault, o.rank, (int)o.mode);
        run_ranks(2, refuse_odd_one, &o);
    }
}

/* Element (i,j) lies at 3 i + 8 j. No stride is larger than the span of the other dim, yet no two
 * elements meet. Elements of a source may share memory. */
static tsr_status weave(tsr_comm *comm, void *arg)
{
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", *(const tsr_mode *)arg));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    tsr_tensor src = f.src, dst = f.dst;
    for (int i = 0; i < MOST; i++)
        f.src_values[i] = (float)(100 * tsr_comm_rank(comm) + i);
    dst.strides[0] = 3;
    dst.strides[1] = 8;
    src.strides[0] = 1;
    TSR_TRY(fixture_execute(&f, &src, &dst));
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t j = 0; j < SIDE / 2; j++)
            CHECK(f.dst_values[3 * i + 8 * j] == (float)(100 * (i / 4) + i % 4 + j + 4 * tsr_comm_rank(comm)));
    fixture_destroy(&f);
    return TSR_OK;
}

static void strides_that_weave_elements_without_a_meeting_are_taken(void **state)
{
    (void)state;
    for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
        test_case("woven strides, mode %d", (int)mode);
        run_ranks(2, weave, &mode);
    }
}

static tsr_status refuse_another_ranks_plan(tsr_comm *comm, void *arg)
{
    (void)arg;
    fixture f;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan *other = NULL, *nobodys = NULL;
    TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", TSR_MODE_DIRECT));
    options.rank = 1 - tsr_comm_rank(comm);
    TSR_TRY(tsr_plan_create(f.src_layout, f.dst_layout, &options, &other));
    CHECK_ERROR(tsr_plan_prepare(other, comm), TSR_ERROR_STATE, "rank");
    CHECK_ERROR(tsr_plan_execute(other, comm, &f.src, &f.dst, NULL, 0, NULL), TSR_ERROR_STATE, NULL);
    options.rank = TSR_RANK_NONE;
    TSR_TRY(tsr_plan_create(f.src_layout, f.dst_layout, &options, &nobodys));
    CHECK_ERROR(tsr_plan_prepare(nobodys, comm), TSR_ERROR_STATE, NULL);
    CHECK_ERROR(tsr_plan_execute(nobodys, comm, &f.src, &f.dst, NULL, 0, NULL), TSR_ERROR_STATE, NULL);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_plan_destroy(nobodys);
    tsr_plan_destroy(other);
    fixture_destroy(&f);
    return TSR_OK;
}

static void a_plan_of_another_rank_is_refused(void **state)
{
    (void)state;
    test_case("another rank's plan");
    run_ranks(2, refuse_another_ranks_plan, NULL);
}

static tsr_status share_memory(tsr_comm *comm, void *arg)
{
    fixture f;
    TSR_TRY(fixture_make(&f, comm, "P", "R", *(const tsr_mode *)arg));
    CHECK(tsr_plan_in_place(f.plan));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    for (int i = 0; i < MOST; i++)
        f.src_values[i] = (float)(i + tsr_comm_rank(comm));
    tsr_tensor other = f.src;
    other.data = f.src_values + 1;
    CHECK_ERROR(fixture_execute(&f, &f.src, &other), TSR_ERROR_ARGUMENT, "overlap");
    other = f.src;
    other.strides[0] = 1;
    other.strides[1] = SIDE;
    CHECK_ERROR(fixture_execute(&f, &f.src, &other), TSR_ERROR_ARGUMENT, NULL);
    TSR_TRY(fixture_execute(&f, &f.src, &f.src));
    for (int i = 0; i < MOST; i++)
        CHECK(f.src_values[i] == (float)(2 * i + 1));
    fixture_destroy(&f);
    return TSR_OK;
}

static void in_place_means_one_pointer_and_the_same_strides(void **state)
{
    (void)state;
    for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
        test_case("shared memory, mode %d", (int)mode);
        run_ranks(2, share_memory, &mode);
    }
}

/* Interleaved columns: the two tensors share a range of memory but no element. */
static tsr_status share_rows(tsr_comm *comm, void *arg)
{
    fixture f;
    float both[2 * MOST];
    TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", *(const tsr_mode *)arg));
    TSR_TRY(tsr_plan_prepare(f.plan, comm));
    const int rank = tsr_comm_rank(comm);
    tsr_tensor src = f.src, dst = f.dst;
    src.data = both;
    src.strides[0] = 2 * SIDE;
    dst.data = both + SIDE;
    dst.strides[0] = 2 * SIDE;
    for (int64_t i = 0; i < SIDE / 2; i++)
        for (int64_t j = 0; j < SIDE; j++)
            both[i * 2 * SIDE + j] = (float)((i + 4 * rank) * SIDE + j);
    const tsr_status status = fixture_execute(&f, &src, &dst);
    for (int64_t i = 0; i < SIDE && status == TSR_OK; i++)
        for (int64_t j = 0; j < SIDE / 2; j++)
            CHECK(both[SIDE + i * 2 * SIDE + j] == (float)(i * SIDE + j + 4 * rank));
    /* Telling such tensors apart is not promised; refusal is allowed, wrong values are not. */
    CHECK(status == TSR_OK || (status == TSR_ERROR_ARGUMENT && strstr(tsr_status_message(), "overlap")));
    fixture_destroy(&f);
    return TSR_OK;
}

static void tensors_woven_into_each_other_come_out_right_or_are_refused(void **state)
{
    (void)state;
    for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
        test_case("woven memory, mode %d", (int)mode);
        run_ranks(2, share_rows, &mode);
    }
}

/* Rank 1 has no row of the source, or of the destination. A tensor without elements may point
 * anywhere. */
static tsr_status point_empty_tensors_anywhere(tsr_comm *comm, void *arg)
{
    static const char *const moves[][2] = {{"S(0)", "S(1)"}, {"S(1)", "S(0)"}};
    for (int i = 0; i < 2; i++) {
        fixture f;
        TSR_TRY(fixture_make_of(&f, comm, "1x8", moves[i][0], moves[i][1], *(const tsr_mode *)arg));
        TSR_TRY(tsr_plan_prepare(f.plan, comm));
        for (int offset = 0; offset < 4; offset++) {
            tsr_tensor *const empty = i == 0 ? &f.src : &f.dst;
            if (tsr_comm_rank(comm) == 1)
                empty->data = (i == 0 ? f.dst_values : f.src_values) + offset;
            TSR_TRY(fixture_execute(&f, &f.src, &f.dst));
        }
        fixture_destroy(&f);
    }
    return TSR_OK;
}

static void empty_tensors_overlap_nothing(void **state)
{
    (void)state;
    for (tsr_mode mode = TSR_MODE_DIRECT; mode <= TSR_MODE_MESSAGE; mode++) {
        test_case("empty tensors, mode %d", (int)mode);
        run_ranks(2, point_empty_tensors_anywhere, &mode);
    }
}

/* The number of times that this thread's engine was asked for a rank's node. */
static _Thread_local int asked;

static int one_node(void *self, int rank)
{
    (void)self;
    (void)rank;
    asked++;
    return 0;
}

static const tsr_comm_nodes direct_node = {.size = sizeof direct_node, .node_of = one_node, .direct = 1};

/* The engine reads memory within a node, which a plan looks for once: other ranks' parts go the way
 * that it found. */
static tsr_status look_at_all_parts(tsr_comm *carrier, void *arg)
{
    void *self = NULL;
    tsr_comm *copy = NULL, *comm = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    tsr_plan_survey survey;
    tsr_comm_table table = message_engine_table;
    (void)arg;
    table.nodes = &direct_node;
    TSR_TRY(tsr_comm_split(carrier, 0, tsr_comm_rank(carrier), &copy));
    TSR_TRY(message_engine_self(copy, &self));
    TSR_TRY(tsr_comm_create_from_table(tsr_comm_context(carrier), &table, self, &comm));
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_F32, &src));
    TSR_TRY(layout_over(comm, "2", "8x8", "S(1)", TSR_F32, &dst));
    asked = 0;
    TSR_TRY(tsr_plan_create(src, dst, NULL, &plan));
    CHECK(asked > 0);
    asked = 0;
    TSR_TRY(tsr_plan_survey_of(plan, &survey));
    CHECK(asked == 0);
    CHECK(survey.bytes_received.total == 2 * MOST / 4 * (int64_t)sizeof(float));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void a_survey_asks_no_engine(void **state)
{
    (void)state;
    test_case("all parts of a plan that is direct within a node");
    run_ranks(2, look_at_all_parts, NULL);
}

/* Rank 1 failed before the execution: its peer hears why, and the next execution works. */
static tsr_status execute_failed(tsr_comm *comm, void *arg)
{
    fixture f;
    const char *const to = arg;
    for (int mode = 0; mode < 2; mode++) {
        TSR_TRY(fixture_make(&f, comm, "S(0)", to, mode ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT));
        TSR_TRY(tsr_plan_prepare(f.plan, comm));
        if (tsr_comm_rank(comm) == 1) {
            const tsr_status failed = tsr_status_set(TSR_ERROR_IO, "the disk is gone");
            CHECK_ERROR(mode ? tsr_plan_execute_failed(f.plan, comm, NULL, failed)
                             : tsr_plan_execute_failed_on(f.plan, comm, tsr_device_host(), NULL, failed),
                        TSR_ERROR_IO, "the disk is gone");
        } else
            CHECK_ERROR(fixture_execute(&f, &f.src, &f.dst), TSR_ERROR_PEER, "rank 1 failed: the disk is gone");
        TSR_TRY(fixture_execute(&f, &f.src, &f.dst));
        fixture_destroy(&f);
    }
    return TSR_OK;
}

static void a_rank_that_failed_before_tells_its_peers_why(void **state)
{
    (void)state;
    static const char *const to[] = {"S(1)", "R"};
    for (int i = 0; i < 2; i++) {
        test_case("%s", to[i]);
        run_ranks(2, execute_failed, (void *)to[i]);
    }
}

/* Peers that are between the halves of the execution hear of a rank that failed before. */
static tsr_status start_failed(tsr_comm *comm, void *arg)
{
    fixture f;
    (void)arg;
    for (int mode = 0; mode < 2; mode++) {
        TSR_TRY(fixture_make(&f, comm, "S(0)", "S(1)", mode ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT));
        TSR_TRY(tsr_plan_prepare(f.plan, comm));
        tsr_status status;
        if (tsr_comm_rank(comm) == 1)
            status = tsr_plan_execute_failed(f.plan, comm, NULL, tsr_status_set(TSR_ERROR_IO, "the disk is gone"));
        else
            status = tsr_plan_start(f.plan, comm, &f.src, &f.dst, f.workspace, f.bytes, NULL);
        if (status == TSR_OK)
            status = tsr_plan_finish(f.plan, comm);
        CHECK_ERROR(status, tsr_comm_rank(comm) == 1 ? TSR_ERROR_IO : TSR_ERROR_PEER, "the disk is gone");
        TSR_TRY(fixture_execute(&f, &f.src, &f.dst));
        fixture_destroy(&f);
    }
    return TSR_OK;
}

static void a_rank_that_failed_tells_peers_that_have_started(void **state)
{
    (void)state;
    run_ranks(2, start_failed, NULL);
}

/* Whether plans of an all-to-all, of a gather and of a move within ranks overlap. */
static tsr_status expect_overlaps(tsr_comm *comm, int any, int all_to_all, int gather)
{
    const struct {
        const char *from, *to;
        int wanted;
    } moves[] = {{"S(0)", "S(1)", all_to_all}, {"S(0)", "R", gather}, {"R", "S(0)", 0}};
    fixture f;
    CHECK(tsr_plan_overlaps(NULL, comm) == any);
    CHECK(tsr_plan_overlaps(NULL, NULL) == 0);
    for (size_t i = 0; i < sizeof moves / sizeof moves[0]; i++) {
        TSR_TRY(fixture_make(&f, comm, moves[i].from, moves[i].to, TSR_MODE_MESSAGE));
        TSR_TRY(tsr_plan_prepare(f.plan, comm));
        CHECK(tsr_plan_overlaps(f.plan, comm) == moves[i].wanted);
        fixture_destroy(&f);
    }
    return TSR_OK;
}

static tsr_status overlap(tsr_comm *carrier, void *arg)
{
    tsr_comm *comm;
    (void)arg;
    TSR_TRY(expect_overlaps(carrier, 0, 0, 0));
    TSR_TRY(message_engine_create(carrier, NULL, &comm));
    TSR_TRY(expect_overlaps(comm, 1, 1, 1));
    tsr_comm_destroy(comm);
    TSR_TRY(message_engine_create_own(carrier, NULL, NULL, MESSAGE_ENGINE_PLAIN, &comm));
    TSR_TRY(expect_overlaps(comm, 1, 1, 0));
    tsr_comm_destroy(comm);
    return TSR_OK;
}

static void plans_overlap_where_messages_travel_between_halves(void **state)
{
    (void)state;
    run_ranks(2, overlap, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_that_failed_before_tells_its_peers_why),
        cmocka_unit_test(what_does_not_fit_a_plan_is_refused_by_a_sentence),
        cmocka_unit_test(one_ranks_bad_tensor_fails_the_others_and_breaks_nothing),
        cmocka_unit_test(what_only_looks_like_the_host_is_refused_and_peers_are_told),
        cmocka_unit_test(strides_that_weave_elements_without_a_meeting_are_taken),
        cmocka_unit_test(a_plan_of_another_rank_is_refused),
        cmocka_unit_test(in_place_means_one_pointer_and_the_same_strides),
        cmocka_unit_test(tensors_woven_into_each_other_come_out_right_or_are_refused),
        cmocka_unit_test(empty_tensors_overlap_nothing),
        cmocka_unit_test(a_survey_asks_no_engine),
        cmocka_unit_test(a_rank_that_failed_tells_peers_that_have_started),
        cmocka_unit_test(plans_overlap_where_messages_travel_between_halves),
    };
    test_watchdog(20);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
