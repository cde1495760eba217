/*
 * CUDA graphs over NCCL, one for each rank: a move is captured once and replayed with other data.
 * Over the stand-in, and over NCCL where there are GPUs.
 */
#include "enqueued.h"
#include "graph_calls.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { REPLAYS = 4 };

/* The first execution connects ranks, which should not happen in a capture. */
static tsr_status capture(const enqueued *e, void **graph)
{
    TSR_TRY(enqueued_put(e, 0));
    TSR_TRY(enqueued_execute(e));
    TSR_TRY(tsr_comm_wait(e->comm, e->stream, 0));
    TSR_TRY(graph_begin(e->stream));
    const tsr_status status = enqueued_execute(e);
    const tsr_status ended = graph_end(e->stream, graph);
    return status != TSR_OK ? status : ended;
}

/* Launches twice in a row, with other data the second time, and waits once. */
static tsr_status replay(const enqueued *e, void *graph)
{
    for (int i = 0; i < ENQUEUED_ROUNDS; i++) {
        TSR_TRY(enqueued_put(e, i));
        TSR_TRY(graph_launch(graph, e->stream));
        TSR_TRY(enqueued_get(e, i));
    }
    TSR_TRY(tsr_comm_wait(e->comm, e->stream, 0));
    TSR_TRY(enqueued_compare(e, 0));
    return enqueued_compare(e, 1);
}

static tsr_status play(tsr_comm *comm, void *arg)
{
    enqueued e;
    void *graph = NULL;
    tsr_status status = enqueued_start(&e, comm, arg, graph_nccl_device(), NULL);
    if (status == TSR_OK)
        status = capture(&e, &graph);
    for (int i = 0; i < REPLAYS && status == TSR_OK; i++)
        status = replay(&e, graph);
    /* The communicator is still usable. */
    if (status == TSR_OK)
        status = enqueued_execute(&e);
    if (status == TSR_OK)
        status = tsr_comm_wait(comm, e.stream, 0);
    graph_destroy(graph);
    enqueued_finish(&e);
    return status;
}

static void run_line(tsr_dtype dtype, tsr_placement from, tsr_placement to)
{
    const int64_t shape[] = {12, 20};
    const char *reason = "";
    static enqueued_move move;
    for (int wanted = 2; wanted <= 4; wanted++) {
        const int ranks = graph_nccl_ranks(wanted, &reason);
        if (ranks == 0) {
            print_message("skipped: %s\n", reason);
            skip();
        }
        enqueued_line(&move, ranks, dtype, 2, shape, from, to);
        enqueued_name(&move);
        const tsr_status status = graph_nccl_run(ranks, play, &move);
        if (status != TSR_OK)
            fail_msg("%s: %s\ncase: %s", tsr_status_name(status), tsr_status_message(), test_case_text());
    }
}

static void messages_are_replayed(void **state)
{
    (void)state;
    run_line(TSR_F32, tsr_shard(0), tsr_shard(1));
}

static void reductions_are_replayed(void **state)
{
    (void)state;
    run_line(TSR_BF16, tsr_partial(TSR_SUM), tsr_shard(0));
    run_line(TSR_F32, tsr_partial(TSR_SUM), tsr_replicate());
}

static void collectives_are_replayed(void **state)
{
    (void)state;
    run_line(TSR_F16, tsr_shard(1), tsr_replicate());
    run_line(TSR_I32, tsr_partial(TSR_SUM), tsr_replicate());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_replayed),
        cmocka_unit_test(reductions_are_replayed),
        cmocka_unit_test(collectives_are_replayed),
    };
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
