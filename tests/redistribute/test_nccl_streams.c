/* Executions over NCCL's engine enqueue on a stream, and neither ask their peers, nor wait for the
 * GPU, nor allocate. Floating values are reduced as on the host, bit for bit. */
#include "enqueued.h"
#include "ranks.h"
#include "standin.h"
#include "standin_ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { PEER_TIMEOUT_MS = 100 };

typedef struct trial {
    enqueued_move move;
    const tsr_plan_options *options;
    int kernels; /* that an execution leaves to NCCL on a rank that has tensors */
} trial;

static bool has_tensors(const enqueued *e)
{
    return oracle_mesh_position(&e->move->src.mesh, tsr_comm_rank(e->comm)) >= 0;
}

/* The first execution may meet peers, so the second one is checked. */
static tsr_status execute_twice(const enqueued *e, int kernels)
{
    TSR_TRY(enqueued_put(e, 0));
    TSR_TRY(enqueued_execute(e));
    TSR_TRY(enqueued_get(e, 0));
    TSR_TRY(enqueued_put(e, 1));
    const standin_tally before = standin_tally_of_thread();
    TSR_TRY(enqueued_execute(e));
    const standin_tally after = standin_tally_of_thread();
    TSR_TRY(enqueued_get(e, 1));
    TSR_TRY(tsr_comm_wait(e->comm, e->stream, 0));
    CHECK(after.waits == before.waits);
    CHECK(after.allocations == before.allocations);
    CHECK(after.kernels - before.kernels == (has_tensors(e) ? kernels : 0));
    TSR_TRY(enqueued_compare(e, 0));
    return enqueued_compare(e, 1);
}

static tsr_status play(tsr_comm *comm, void *arg)
{
    const trial *t = arg;
    enqueued e;
    tsr_status status = enqueued_start(&e, comm, &t->move, standin_ranks_device(), t->options);
    if (status == TSR_OK)
        status = execute_twice(&e, t->kernels);
    enqueued_finish(&e);
    return status;
}

static void run_trial(int world, trial *t)
{
    enqueued_name(&t->move);
    for (int lent = 0; lent < 2; lent++) {
        const tsr_status status = (lent ? standin_run_lent : standin_run)(world, play, t, NULL);
        if (status != TSR_OK)
            fail_msg("%s: %s\ncase: %s%s", tsr_status_name(status), tsr_status_message(), test_case_text(),
                     lent ? ", lent" : "");
    }
}

static void run_line(int world, tsr_dtype dtype, tsr_placement from, tsr_placement to, int kernels)
{
    const int64_t shape[] = {12, 20};
    static trial t;
    t = (trial){.kernels = kernels};
    enqueued_line(&t.move, world, dtype, 2, shape, from, to);
    run_trial(world, &t);
}

static void an_execution_enqueues_its_messages_and_nothing_else(void **state)
{
    (void)state;
    for (int world = 2; world <= 5; world++) {
        run_line(world, TSR_F32, tsr_shard(0), tsr_shard(1), 1);
        run_line(world, TSR_BF16, tsr_partial(TSR_SUM), tsr_shard(1), 1);
        run_line(world, TSR_F32, tsr_partial(TSR_SUM), tsr_replicate(), world > 2 ? 2 : 1);
    }
}

/* 2 and 4 ranks divide these shapes, so each move is one collective. */
static void collectives_of_nccl_are_enqueued_just_so(void **state)
{
    (void)state;
    for (int world = 2; world <= 4; world += 2) {
        run_line(world, TSR_F16, tsr_shard(0), tsr_replicate(), 1);
        run_line(world, TSR_F16, tsr_shard(1), tsr_replicate(), 1);
        run_line(world, TSR_I32, tsr_partial(TSR_SUM), tsr_shard(0), 1);
        run_line(world, TSR_I64, tsr_partial(TSR_MAX), tsr_replicate(), 1);
    }
}

static void move_large(const tsr_plan_options *options, int kernels)
{
    const int64_t shape[] = {512, 512};
    static trial t;
    t = (trial){.kernels = kernels, .options = options};
    enqueued_line(&t.move, 2, TSR_F64, 2, shape, tsr_shard(0), tsr_shard(1));
    run_trial(2, &t);
}

/* 512 KiB go each way, packed on both ends, in two halves: a quarter of it fits at a time. */
static void rounds_follow_one_another_in_the_stream(void **state)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    (void)state;
    options.max_workspace = (size_t)512 << 10;
    move_large(&options, 4);
}

static void what_a_host_would_cut_goes_to_a_gpu_at_once(void **state)
{
    (void)state;
    move_large(NULL, 1);
}

static void a_rank_outside_the_meshes_has_nothing_to_do(void **state)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    const int64_t shape[] = {6, 5};
    static trial t;
    (void)state;
    options.no_split = 1;
    t = (trial){.kernels = 1, .options = &options};
    enqueued_line(&t.move, 2, TSR_F32, 2, shape, tsr_shard(0), tsr_shard(1));
    run_trial(4, &t);
}

/* Integers may be reduced by NCCL, floating values only by our kernel: which of them is not looked
 * at. */
static tsr_status move_once(tsr_comm *comm, void *arg)
{
    enqueued e;
    tsr_status status = enqueued_start(&e, comm, &((const trial *)arg)->move, standin_ranks_device(), NULL);
    if (status == TSR_OK)
        status = enqueued_put(&e, 0);
    if (status == TSR_OK)
        status = enqueued_execute(&e);
    if (status == TSR_OK)
        status = enqueued_get(&e, 0);
    if (status == TSR_OK)
        status = tsr_comm_wait(comm, e.stream, 0);
    if (status == TSR_OK)
        status = enqueued_compare(&e, 0);
    enqueued_finish(&e);
    return status;
}

static void reduce_one(tsr_dtype dtype, tsr_reduce_op op, tsr_placement to)
{
    enum { WORLD = 3 };
    const int64_t shape[] = {7, 11};
    static trial t;
    enqueued_line(&t.move, WORLD, dtype, 2, shape, tsr_partial(op), to);
    enqueued_name(&t.move);
    const tsr_status status = standin_run(WORLD, move_once, &t, NULL);
    if (status != TSR_OK)
        fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
}

static void every_dtype_and_op_gives_the_bits_of_rank_order(void **state)
{
    (void)state;
    for (int dtype = TSR_DTYPE_NONE + 1; dtype < TSR_DTYPE_END; dtype++)
        for (int op = 0; op < TSR_REDUCE_OP_END; op++)
            if (oracle_has_op((tsr_dtype)dtype, (tsr_reduce_op)op)) {
                reduce_one((tsr_dtype)dtype, (tsr_reduce_op)op, tsr_shard(0));
                reduce_one((tsr_dtype)dtype, (tsr_reduce_op)op, tsr_replicate());
            }
}

/* Rank 1 brings a tensor of another dtype. */
static tsr_status fail_alone(const enqueued *e)
{
    tsr_tensor odd = e->src;
    odd.dtype = TSR_F64;
    TSR_TRY(check_error(tsr_plan_execute(e->plan, e->comm, &odd, &e->dst, e->workspace, e->workspace_bytes, e->stream),
                        TSR_ERROR_ARGUMENT,
                        "src is of f64, but the layout of f32 (peers are not told of failures in this execution",
                        __FILE__, __LINE__, "execute"));
    return check_error(enqueued_execute(e), TSR_ERROR_PEER, "rank 1 of 3 has aborted", __FILE__, __LINE__,
                       "the next call");
}

static tsr_status wait_in_vain(const enqueued *e)
{
    const tsr_status status = enqueued_execute(e);
    CHECK(status == TSR_OK || status == TSR_ERROR_PEER);
    CHECK_ERROR(tsr_comm_wait(e->comm, e->stream, PEER_TIMEOUT_MS), TSR_ERROR_PEER, NULL);
    CHECK_ERROR(tsr_comm_barrier(e->comm), TSR_ERROR_PEER, "an earlier call has broken this communicator");
    return TSR_OK;
}

static tsr_status lose_a_rank(tsr_comm *comm, void *arg)
{
    enqueued e;
    tsr_status status = enqueued_start(&e, comm, &((const trial *)arg)->move, standin_ranks_device(), NULL);
    if (status == TSR_OK)
        status = tsr_comm_rank(comm) == 1 ? fail_alone(&e) : wait_in_vain(&e);
    enqueued_finish(&e);
    return status;
}

static void a_rank_that_fails_by_itself_says_so_at_once_and_its_peers_in_time(void **state)
{
    const int64_t shape[] = {9, 6};
    const tsr_placement to[] = {tsr_shard(1), tsr_replicate()};
    static trial t;
    (void)state;
    for (int i = 0; i < 2; i++) {
        enqueued_line(&t.move, 3, TSR_F32, 2, shape, tsr_shard(0), to[i]);
        enqueued_name(&t.move);
        const tsr_status status = standin_run(3, lose_a_rank, &t, NULL);
        if (status != TSR_OK)
            fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
    }
}

/* Rank 1's k-th call of NCCL or of the runtime fails. The error names the call, and says that the
 * communicator is broken. */
static tsr_status fail_call(const enqueued *e, int k, bool *failed)
{
    standin_fail_call(k);
    const tsr_status status = enqueued_execute(e);
    standin_fail_call(0);
    const char *call = standin_failed_call();
    *failed = call;
    if (!call)
        return status;
    TSR_TRY(check_error(status, TSR_ERROR_DEVICE, call, __FILE__, __LINE__, "execute"));
    return check_error(tsr_comm_barrier(e->comm), TSR_ERROR_PEER, NULL, __FILE__, __LINE__, "the next call");
}

typedef struct failing {
    enqueued_move move;
    int k;
    bool failed; /* rank 1 has so many calls */
} failing;

static tsr_status fail_in_the_middle(tsr_comm *comm, void *arg)
{
    failing *f = arg;
    enqueued e;
    tsr_status status = enqueued_start(&e, comm, &f->move, standin_ranks_device(), NULL);
    if (status == TSR_OK && tsr_comm_rank(comm) == 1) {
        status = fail_call(&e, f->k, &f->failed);
    } else if (status == TSR_OK) {
        const tsr_status executed = enqueued_execute(&e);
        const tsr_status waited = executed == TSR_OK ? tsr_comm_wait(comm, e.stream, PEER_TIMEOUT_MS) : executed;
        if (waited != TSR_OK && waited != TSR_ERROR_PEER)
            status = waited;
    }
    /* A rank may fail although its peers are done, so no rank waits for its return. */
    tsr_comm_abort(comm);
    enqueued_finish(&e);
    return status;
}

static void whatever_call_fails_ends_the_execution_of_that_rank(void **state)
{
    enum { WORLD = 3, MOST_CALLS = 100 };
    const int64_t shape[] = {9, 6};
    static failing f;
    (void)state;
    enqueued_line(&f.move, WORLD, TSR_F32, 2, shape, tsr_partial(TSR_SUM), tsr_replicate());
    f.failed = true;
    for (f.k = 1; f.failed; f.k++) {
        test_case("call %d of rank 1 fails", f.k);
        assert_true(f.k < MOST_CALLS);
        const tsr_status status = standin_run(WORLD, fail_in_the_middle, &f, NULL);
        if (status != TSR_OK)
            fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
    }
    assert_true(f.k > 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_execution_enqueues_its_messages_and_nothing_else),
        cmocka_unit_test(collectives_of_nccl_are_enqueued_just_so),
        cmocka_unit_test(rounds_follow_one_another_in_the_stream),
        cmocka_unit_test(what_a_host_would_cut_goes_to_a_gpu_at_once),
        cmocka_unit_test(a_rank_outside_the_meshes_has_nothing_to_do),
        cmocka_unit_test(every_dtype_and_op_gives_the_bits_of_rank_order),
        cmocka_unit_test(a_rank_that_fails_by_itself_says_so_at_once_and_its_peers_in_time),
        cmocka_unit_test(whatever_call_fails_ends_the_execution_of_that_rank),
    };
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
