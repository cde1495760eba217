/* Failures of one rank in the middle of a call: its own error gives the cause, the others' errors
 * name the rank, and the next call succeeds. */
#include "counted_memory.h"
#include "message_engine.h"
#include "ranks.h"
#include "support.h"

#include <tessera/sys/device.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RANKS = 4, ODD = 1 };

/* A device on host memory that fails in chosen threads: always, or when a counter of calls reaches
 * 0. */
static _Thread_local int fails_copies, fails_reductions, calls_left;

static int is_the_one(void)
{
    return calls_left > 0 && --calls_left == 0;
}

static tsr_status copy_boxes(void *self, int index, const tsr_box_copy *boxes, size_t count, tsr_stream stream)
{
    if (fails_copies || is_the_one())
        return tsr_status_set(TSR_ERROR_DEVICE, "the device broke a copy");
    return tsr_device_driver_table(NULL, &self)->copy_boxes(self, index, boxes, count, stream);
}

static tsr_status reduce(void *self, int index, const tsr_box_reduce *what, tsr_stream stream)
{
    if (fails_reductions || is_the_one())
        return tsr_status_set(TSR_ERROR_DEVICE, "the device broke a reduction");
    return tsr_device_driver_table(NULL, &self)->reduce(self, index, what, stream);
}

static tsr_status make_driver(tsr_device_driver **out)
{
    void *self;
    tsr_device_table table = *tsr_device_driver_table(NULL, &self);
    table.name = "brittle";
    table.copy_boxes = copy_boxes;
    table.reduce = reduce;
    return tsr_device_driver_create(&table, self, out);
}

static tsr_status check_named(int rank, tsr_status status, tsr_status own)
{
    return rank == ODD ? check_error(status, own, "", __FILE__, __LINE__, "the odd rank's call")
                       : check_error(status, TSR_ERROR_PEER, "rank 1", __FILE__, __LINE__, "another rank's call");
}

static tsr_status move(tsr_comm *comm, tsr_device device, const char *from, const char *to)
{
    tsr_layout *src = NULL, *dst = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(layout_over(comm, "4", "8x6", from, TSR_F32, &src));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(src), to, 2, tsr_layout_shape(src), TSR_F32, &dst));
    TSR_TRY(tsr_dtensor_create(src, device, &x));
    TSR_TRY(tsr_dtensor_create(dst, device, &y));
    const int rank = tsr_comm_rank(comm);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    for (int64_t i = 0; i < local.shape[0] * local.shape[1]; i++)
        ((float *)local.data)[i] = 1.0f;
    TSR_TRY(tsr_redistribute_into(x, y, NULL));
    fails_copies = fails_reductions = rank == ODD;
    const tsr_status status = tsr_redistribute_into(x, y, NULL);
    fails_copies = fails_reductions = 0;
    TSR_TRY(check_named(rank, status, TSR_ERROR_DEVICE));
    TSR_TRY(tsr_redistribute_into(x, y, NULL));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static tsr_status break_devices(tsr_comm *comm, void *arg)
{
    tsr_comm *messages = NULL;
    tsr_device_driver *driver = NULL;
    if (arg)
        TSR_TRY(message_engine_create(comm, NULL, &messages));
    TSR_TRY(make_driver(&driver));
    tsr_comm *used = arg ? messages : comm;
    TSR_TRY(move(used, (tsr_device){driver, 0}, "S(0)", "S(1)"));
    TSR_TRY(move(used, (tsr_device){driver, 0}, "P", "R"));
    tsr_comm_destroy(messages);
    tsr_device_driver_destroy(driver);
    return TSR_OK;
}

static void a_device_that_fails_on_one_rank_is_named_and_nobody_waits_for_it(void **state)
{
    (void)state;
    test_case("a device fails, direct");
    run_ranks(RANKS, break_devices, NULL);
    test_case("a device fails, messages");
    run_ranks(RANKS, break_devices, "messages");
}

/* A move in many rounds and two phases between strided tensors, so that all data is packed and
 * unpacked. */
typedef struct rounds {
    tsr_device_driver *driver;
    tsr_comm *comm;
    tsr_plan *plan;
    tsr_tensor src, dst;
    double in[12 * 16], out[12 * 16];
    void *workspace;
    size_t bytes;
} rounds;

enum { ROUNDS_CAP = 256 };

static tsr_status rounds_make(rounds *r, tsr_comm *comm, tsr_device_driver *driver)
{
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = TSR_MODE_MESSAGE;
    options.max_workspace = ROUNDS_CAP;
    *r = (rounds){.driver = driver, .comm = comm};
    TSR_TRY(layout_over(comm, "2x2", "12x16", "P,S(0)", TSR_F64, &src));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(src), "S(1),R", 2, tsr_layout_shape(src), TSR_F64, &dst));
    TSR_TRY(tsr_plan_create(src, dst, &options, &r->plan));
    TSR_TRY(tsr_plan_prepare(r->plan, comm));
    TSR_TRY(shard_over(src, r->in, &r->src));
    r->src.strides[0] = 1;
    r->src.strides[1] = r->src.shape[0];
    TSR_TRY(shard_over(dst, r->out, &r->dst));
    r->dst.strides[0] = 1;
    r->dst.strides[1] = r->dst.shape[0];
    r->src.device = r->dst.device = (tsr_device){driver, 0};
    for (int i = 0; i < 12 * 16; i++)
        r->in[i] = 1.0;
    r->workspace = workspace_for(r->plan, &r->bytes);
    CHECK(r->bytes > 0 && r->bytes <= ROUNDS_CAP);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static tsr_status rounds_execute(rounds *r)
{
    return tsr_plan_execute(r->plan, r->comm, &r->src, &r->dst, r->workspace, r->bytes, NULL);
}

static tsr_status rounds_check(const rounds *r)
{
    for (int64_t i = 0; i < r->dst.shape[0] * r->dst.shape[1]; i++)
        CHECK(r->out[i] == 2.0);
    return TSR_OK;
}

/* Each copy and reduction of rank ODD fails once, in every round and phase. */
static tsr_status break_rounds(tsr_comm *comm, void *arg)
{
    tsr_comm *messages = NULL;
    tsr_device_driver *driver = NULL;
    const int rank = tsr_comm_rank(comm);
    rounds r;
    int left = 0, failures = 0;
    if (arg)
        TSR_TRY(message_engine_create(comm, NULL, &messages));
    TSR_TRY(make_driver(&driver));
    TSR_TRY(rounds_make(&r, arg ? messages : comm, driver));
    for (int call = 1; left == 0; call++) {
        calls_left = rank == ODD ? call : 0;
        tsr_status status = rounds_execute(&r);
        left = calls_left;
        calls_left = 0;
        TSR_TRY(tsr_comm_broadcast(comm, &left, 1, TSR_I32, ODD, tsr_device_host(), NULL));
        if (left == 0) {
            TSR_TRY(check_named(rank, status, TSR_ERROR_DEVICE));
            failures++;
            status = rounds_execute(&r);
        }
        TSR_TRY(status);
        TSR_TRY(rounds_check(&r));
    }
    CHECK(failures > 20);
    tsr_plan_destroy(r.plan);
    free(r.workspace);
    tsr_comm_destroy(messages);
    tsr_device_driver_destroy(driver);
    return TSR_OK;
}

static void a_device_that_fails_in_any_round_is_named_after_the_last(void **state)
{
    (void)state;
    test_case("a device fails in a round, rank threads");
    run_ranks(RANKS, break_rounds, NULL);
    test_case("a device fails in a round, messages");
    run_ranks(RANKS, break_rounds, "messages");
}

enum { BLOCKS = 600 };

/* The placement has a long list. A rank without memory fails even when its plan is kept already. */
static tsr_status run_out(tsr_comm *comm, void *arg)
{
    (void)arg;
    const int64_t shape[] = {BLOCKS, 2};
    int64_t blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = 1;
    tsr_placement fused = tsr_shard(0), whole = tsr_replicate();
    fused.blocks = blocks;
    fused.block_count = BLOCKS;
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    float *values = calloc(2 * BLOCKS, sizeof *values);
    CHECK(values != NULL);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    TSR_TRY(mesh_over(comm, "4", &mesh));
    TSR_TRY(tsr_distribute_tensor(&global, mesh, &whole, NULL, &x));
    for (int round = 0; round < 2; round++) {
        tsr_dtensor *y = NULL, *z = NULL;
        counted_fail_here(tsr_comm_rank(comm) == ODD, true);
        const tsr_status status = tsr_redistribute(x, &fused, &y);
        counted_fail_here(0, false);
        /* In the second round the plan is kept and moves nothing between ranks, so the other ranks
         * succeed. */
        if (round == 0 || tsr_comm_rank(comm) == ODD)
            TSR_TRY(check_named(tsr_comm_rank(comm), status, TSR_ERROR_MEMORY));
        tsr_dtensor_destroy(y);
        TSR_TRY(tsr_redistribute(x, &fused, &z));
        tsr_dtensor_destroy(z);
    }
    blocks[0] = 2;
    tsr_dtensor *y = NULL;
    CHECK_ERROR(tsr_redistribute(x, &fused, &y), TSR_ERROR_ARGUMENT, "sum to 601");
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    free(values);
    return TSR_OK;
}

static void long_lists_take_no_memory_to_look_up(void **state)
{
    (void)state;
    test_case("no memory for a placement with long lists");
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    const tsr_status status = tsr_threads_run(RANKS, run_out, NULL, &options);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

/* Executes a plan that was prepared for another communicator, in a group of this one that another
 * plan made. The group has room enough on all ranks but the first. */
static tsr_status execute_unprepared(tsr_comm *comm, void *arg)
{
    (void)arg;
    const tsr_placement partial = tsr_partial(TSR_SUM), rows = tsr_shard(0);
    tsr_comm *elsewhere = NULL;
    tsr_mesh *mesh = NULL;
    tsr_layout *src[2] = {NULL, NULL}, *dst[2] = {NULL, NULL};
    tsr_plan *plans[2] = {NULL, NULL};
    TSR_TRY(tsr_comm_split(comm, 0, tsr_comm_rank(comm), &elsewhere));
    TSR_TRY(mesh_over(comm, "4", &mesh));
    for (int i = 0; i < 2; i++) {
        const int64_t shape[] = {i, 2};
        TSR_TRY(tsr_layout_create(mesh, &partial, 2, shape, TSR_F32, &src[i]));
        TSR_TRY(tsr_layout_create(mesh, &rows, 2, shape, TSR_F32, &dst[i]));
        TSR_TRY(tsr_plan_create(src[i], dst[i], NULL, &plans[i]));
        TSR_TRY(tsr_plan_prepare(plans[i], i == 0 ? comm : elsewhere));
    }
    float in[2] = {1.0f, 2.0f}, out[2];
    const bool first = tsr_comm_rank(comm) == 0;
    const int64_t own[] = {first, 2};
    const tsr_tensor x = tsr_tensor_contiguous(in, TSR_F32, 2, tsr_layout_shape(src[1])),
                     y = tsr_tensor_contiguous(out, TSR_F32, 2, own);
    TSR_TRY(tsr_plan_execute(plans[1], elsewhere, &x, &y, NULL, 0, NULL));
    CHECK(!first || (out[0] == 4.0f && out[1] == 8.0f));
    CHECK_ERROR(tsr_plan_execute(plans[1], comm, &x, &y, NULL, 0, NULL), first ? TSR_ERROR_STATE : TSR_ERROR_PEER,
                "not prepared");
    for (int i = 0; i < 2; i++) {
        tsr_plan_destroy(plans[i]);
        tsr_layout_destroy(dst[i]);
        tsr_layout_destroy(src[i]);
    }
    tsr_mesh_destroy(mesh);
    tsr_comm_destroy(elsewhere);
    return TSR_OK;
}

static void a_rank_without_room_for_a_plan_leaves_nobody_waiting(void **state)
{
    (void)state;
    test_case("a plan that was prepared elsewhere");
    run_ranks(RANKS, execute_unprepared, NULL);
}

static tsr_status gather(const tsr_dtensor *x, tsr_dtensor *y, bool inside)
{
    const int32_t *have = tsr_dtensor_to_local(x).data, *want = tsr_dtensor_to_local(y).data;
    TSR_TRY(tsr_redistribute_into(x, y, NULL));
    CHECK(!inside || (want[0] == 10 && want[1] == 20 && (have[0] == 10 || have[0] == 20)));
    return TSR_OK;
}

/* Ranks 1 and 2 have a plan for themselves. Errors call them rank 1 and rank 2, though they are
 * ranks 0 and 1 of the plan's group. */
static tsr_status fail_in_a_part(tsr_comm *comm, void *arg)
{
    tsr_layout *half = NULL, *whole = NULL;
    tsr_plan *plan = NULL, *other = NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = arg ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    const int rank = tsr_comm_rank(comm);
    int32_t have[1] = {rank}, want[2];
    const int64_t one[] = {1}, two[] = {2};
    const tsr_tensor src = tsr_tensor_contiguous(have, TSR_I32, 1, one);
    tsr_tensor dst = tsr_tensor_contiguous(want, rank == 2 ? TSR_U32 : TSR_I32, 1, two);
    unsigned char workspace[512];
    TSR_TRY(layout_over(comm, "2@1", "2", "S(0)", TSR_I32, &half));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(half), "R", 1, two, TSR_I32, &whole));
    TSR_TRY(tsr_plan_create(half, whole, &options, &plan));
    options.max_workspace = 512;
    TSR_TRY(tsr_plan_create(half, whole, &options, &other));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    TSR_TRY(tsr_plan_prepare(other, comm));
    if (rank == 1 || rank == 2) {
        CHECK_ERROR(tsr_plan_execute(plan, comm, &src, &dst, workspace, sizeof workspace, NULL),
                    rank == 2 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, rank == 2 ? "u32" : "rank 2 failed");
        dst.dtype = TSR_I32;
        CHECK_ERROR(tsr_plan_execute(rank == 2 ? other : plan, comm, &src, &dst, workspace, sizeof workspace, NULL),
                    TSR_ERROR_ARGUMENT, "but rank 2 calls");
        TSR_TRY(tsr_plan_execute(plan, comm, &src, &dst, workspace, sizeof workspace, NULL));
        CHECK(want[0] == 1 && want[1] == 2);
    }
    tsr_plan_destroy(other);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(whole);
    tsr_layout_destroy(half);
    return TSR_OK;
}

static void ranks_of_a_part_are_named_as_users_number_them(void **state)
{
    (void)state;
    test_case("ranks 1 and 2 of 4, direct");
    run_ranks(RANKS, fail_in_a_part, NULL);
    test_case("ranks 1 and 2 of 4, by messages between rank threads");
    run_ranks(RANKS, fail_in_a_part, "messages");
    test_case("ranks 1 and 2 of 4, over a message engine");
    const tsr_status status = message_engine_run(RANKS, fail_in_a_part, NULL, NULL);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_message(), test_case_text());
}

/* Ranks 1 and 2 gather, by a collective of the engine if it has one. The first call makes the
 * groups for it, and fails at an allocation on rank 1. No rank may keep a plan that others lack:
 * all plan again, also ranks that are not in the plan. */
static tsr_status gather_again(tsr_comm *comm, void *arg)
{
    int *nth = arg;
    tsr_layout *half = NULL, *whole = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    const bool inside = tsr_comm_rank(comm) == 1 || tsr_comm_rank(comm) == 2, odd = tsr_comm_rank(comm) == ODD;
    TSR_TRY(layout_over(comm, "2@1", "2", "S(0)", TSR_I32, &half));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(half), "R", 1, tsr_layout_shape(half), TSR_I32, &whole));
    TSR_TRY(tsr_dtensor_create(half, tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_create(whole, tsr_device_host(), &y));
    if (inside)
        *(int32_t *)tsr_dtensor_to_local(x).data = 10 * tsr_comm_rank(comm);
    counted_fail_here(odd ? (size_t)*nth : 0, false);
    const tsr_status status = gather(x, y, inside);
    const bool reached = counted_fail_here(0, false) == 0;
    if (odd)
        *nth = reached ? *nth + 1 : 0;
    if (status != TSR_OK)
        TSR_TRY(check_named(tsr_comm_rank(comm), status, TSR_ERROR_MEMORY));
    TSR_TRY(gather(x, y, inside));
    CHECK(tsr_mesh_cache_statistics(tsr_layout_mesh(half)).entries == 1);
    CHECK(tsr_mesh_cache_statistics(tsr_layout_mesh(half)).hits == (status == TSR_OK));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(whole);
    tsr_layout_destroy(half);
    return TSR_OK;
}

static void a_plan_that_one_rank_has_no_memory_for_is_kept_by_none(void **state)
{
    (void)state;
    tsr_status (*const engines[])(int, tsr_rank_main *, void *, const tsr_threads_options *) = {
        tsr_threads_run, message_engine_run, message_engine_run_own};
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    for (int engine = 0; engine < 3; engine++)
        for (int nth = 1; nth > 0;) {
            test_case("engine %d, allocation %d fails", engine, nth);
            const tsr_status status = engines[engine](RANKS, gather_again, &nth, &options);
            if (status != TSR_OK)
                fail_msg("%s: %s", tsr_status_message(), test_case_text());
        }
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
}

/* A move that cannot be done in place is refused before anything is planned. */
static tsr_status refuse_in_place(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *rows = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(layout_over(comm, "4", "8x6", "S(0)", TSR_F32, &rows));
    TSR_TRY(tsr_dtensor_create(rows, tsr_device_host(), &x));
    const tsr_placement columns = tsr_shard(1);
    CHECK_ERROR(tsr_redistribute_in_place(x, &columns, NULL), TSR_ERROR_UNSUPPORTED, "cuts differ");
    CHECK(tsr_mesh_cache_statistics(tsr_layout_mesh(rows)).entries == 0);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(rows);
    return TSR_OK;
}

static void what_does_not_work_in_place_is_not_planned(void **state)
{
    (void)state;
    run_ranks(RANKS, refuse_in_place, NULL);
}

/* Each stride alone would be possible, but the offset of the last element overflows. */
static tsr_status overflow(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *rows = NULL, *whole = NULL;
    tsr_plan *plan = NULL;
    float values[4 * 3 * 3];
    TSR_TRY(layout_over(comm, "4", "4x3x3", "R", TSR_F32, &whole));
    TSR_TRY(tsr_layout_parse(tsr_layout_mesh(whole), "S(0)", 3, tsr_layout_shape(whole), TSR_F32, &rows));
    TSR_TRY(tsr_plan_create(whole, rows, NULL, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    tsr_tensor src = tsr_tensor_contiguous(values, TSR_F32, 3, tsr_layout_shape(whole));
    src.strides[1] = src.strides[2] = INT64_MAX / 4;
    const int64_t local[] = {1, 3, 3};
    float out[9];
    const tsr_tensor dst = tsr_tensor_contiguous(out, TSR_F32, 3, local);
    CHECK_ERROR(tsr_plan_execute(plan, comm, &src, &dst, NULL, 0, NULL), TSR_ERROR_ARGUMENT, "overflows");
    tsr_plan_destroy(plan);
    tsr_layout_destroy(rows);
    tsr_layout_destroy(whole);
    return TSR_OK;
}

static void strides_that_overflow_together_are_refused(void **state)
{
    (void)state;
    run_ranks(RANKS, overflow, NULL);
}

int main(void)
{
    test_watchdog(20);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_fails_on_one_rank_is_named_and_nobody_waits_for_it),
        cmocka_unit_test(a_device_that_fails_in_any_round_is_named_after_the_last),
        cmocka_unit_test(long_lists_take_no_memory_to_look_up),
        cmocka_unit_test(a_rank_without_room_for_a_plan_leaves_nobody_waiting),
        cmocka_unit_test(ranks_of_a_part_are_named_as_users_number_them),
        cmocka_unit_test(a_plan_that_one_rank_has_no_memory_for_is_kept_by_none),
        cmocka_unit_test(what_does_not_work_in_place_is_not_planned),
        cmocka_unit_test(strides_that_overflow_together_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
