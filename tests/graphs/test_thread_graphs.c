/*
 * CUDA graphs over rank threads: the streams of all ranks are forked from one capture and joined to
 * it, and the graph replays the move of all ranks with other data. On GPUs if the machine has any,
 * else on emulated ones.
 */
#include "enqueued.h"
#include "gpus.h"
#include "graph_calls.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { MOST_RANKS = 4 };

/* Shared by all ranks, and written between barriers. */
typedef struct trial {
    enqueued_move move;
    const tsr_plan_options *options;
    tsr_device_driver *driver;
    int devices; /* over which ranks are spread */
    void *fork, *join[MOST_RANKS];
    void *graph;
} trial;

static tsr_status record(const enqueued *e, void *event)
{
    return e->gpu->event_record(e->self, e->device.index, event, e->stream);
}

static tsr_status wait_for(const enqueued *e, void *event)
{
    return e->gpu->event_wait(e->self, e->device.index, event, e->stream);
}

static tsr_status synchronize(const enqueued *e)
{
    return e->gpu->stream_synchronize(e->self, e->device.index, e->stream);
}

/* Begins a capture of rank 0's stream; the other ranks' streams join it by waiting for rank 0's
 * event. */
static tsr_status fork_streams(const enqueued *e, const trial *t)
{
    if (tsr_comm_rank(e->comm) == 0) {
        TSR_TRY(graph_begin(e->stream));
        TSR_TRY(record(e, t->fork));
    }
    TSR_TRY(tsr_comm_barrier(e->comm));
    return tsr_comm_rank(e->comm) == 0 ? TSR_OK : wait_for(e, t->fork);
}

static tsr_status join_streams(const enqueued *e, trial *t)
{
    const int rank = tsr_comm_rank(e->comm);
    if (rank > 0)
        TSR_TRY(record(e, t->join[rank]));
    TSR_TRY(tsr_comm_barrier(e->comm));
    for (int r = 1; rank == 0 && r < tsr_comm_size(e->comm); r++)
        TSR_TRY(wait_for(e, t->join[r]));
    if (rank == 0)
        TSR_TRY(graph_end(e->stream, &t->graph));
    return tsr_comm_barrier(e->comm);
}

/* Executes once before the capture; the capture itself runs nothing. */
static tsr_status capture(const enqueued *e, trial *t)
{
    TSR_TRY(enqueued_put(e, 0));
    TSR_TRY(enqueued_execute(e));
    TSR_TRY(synchronize(e));
    TSR_TRY(tsr_comm_barrier(e->comm));
    TSR_TRY(fork_streams(e, t));
    TSR_TRY(enqueued_execute(e));
    return join_streams(e, t);
}

/* One launch runs the move of all ranks. */
static tsr_status replay(const enqueued *e, const trial *t, int round)
{
    TSR_TRY(enqueued_put(e, round));
    TSR_TRY(synchronize(e));
    TSR_TRY(tsr_comm_barrier(e->comm));
    if (tsr_comm_rank(e->comm) == 0) {
        TSR_TRY(graph_launch(t->graph, e->stream));
        TSR_TRY(synchronize(e));
    }
    TSR_TRY(tsr_comm_barrier(e->comm));
    TSR_TRY(enqueued_get(e, round));
    TSR_TRY(synchronize(e));
    return enqueued_compare(e, round);
}

static tsr_status make_events(const enqueued *e, trial *t)
{
    const int rank = tsr_comm_rank(e->comm);
    return e->gpu->event_create(e->self, e->device.index, rank == 0 ? &t->fork : &t->join[rank]);
}

static void free_events(const enqueued *e, const trial *t)
{
    const int rank = tsr_comm_rank(e->comm);
    e->gpu->event_destroy(e->self, e->device.index, rank == 0 ? t->fork : t->join[rank]);
}

static tsr_status with_events(tsr_comm *comm, trial *t, tsr_status (*body)(const enqueued *e, trial *t))
{
    const tsr_device device = {t->driver, tsr_comm_rank(comm) % t->devices};
    enqueued e;
    tsr_status status = enqueued_start(&e, comm, &t->move, device, t->options);
    if (status == TSR_OK)
        status = make_events(&e, t);
    if (status == TSR_OK)
        status = body(&e, t);
    free_events(&e, t);
    if (tsr_comm_rank(comm) == 0)
        graph_destroy(t->graph);
    enqueued_finish(&e);
    return status;
}

static tsr_status capture_and_replay(const enqueued *e, trial *t)
{
    TSR_TRY(capture(e, t));
    for (int i = 0; i < 4; i++)
        TSR_TRY(replay(e, t, (i + 1) % ENQUEUED_ROUNDS));
    /* Executes without the graph again. */
    TSR_TRY(enqueued_put(e, 0));
    TSR_TRY(enqueued_execute(e));
    TSR_TRY(enqueued_get(e, 0));
    TSR_TRY(synchronize(e));
    return enqueued_compare(e, 0);
}

static tsr_status play(tsr_comm *comm, void *arg)
{
    return with_events(comm, arg, capture_and_replay);
}

/* Refuses captures by each rank alone and by rank 1 alone: these captures are empty, and the
 * communicator stays usable. */
static tsr_status capture_apart(const enqueued *e, trial *t)
{
    void *graph = NULL;
    (void)t;
    for (int alone = 0; alone < 2; alone++) {
        const bool captured = !alone || tsr_comm_rank(e->comm) == 1;
        if (captured)
            TSR_TRY(graph_begin_apart(e->stream));
        CHECK_ERROR(enqueued_execute(e), TSR_ERROR_ARGUMENT,
                    alone ? "runs, but that of rank 1 is captured" : "is captured apart");
        CHECK_ERROR(enqueued_execute(e), TSR_ERROR_ARGUMENT,
                    "fork the streams of all ranks from one capture, and join them to it");
        if (captured)
            TSR_TRY(graph_end(e->stream, &graph));
        graph_destroy(graph);
        graph = NULL;
        TSR_TRY(tsr_comm_barrier(e->comm));
    }
    TSR_TRY(enqueued_put(e, 1));
    TSR_TRY(enqueued_execute(e));
    TSR_TRY(enqueued_get(e, 1));
    TSR_TRY(synchronize(e));
    return enqueued_compare(e, 1);
}

static tsr_status play_apart(tsr_comm *comm, void *arg)
{
    return with_events(comm, arg, capture_apart);
}

static void run_moves(int ranks, tsr_dtype dtype, tsr_placement from, tsr_placement to, const tsr_plan_options *options,
                      tsr_rank_main *body)
{
    const int64_t shape[] = {12, 20};
    static trial t;
    gpus g;
    gpus_open(&g);
    for (int devices = 1; devices <= g.count; devices++) {
        t = (trial){.options = options, .driver = g.driver, .devices = devices};
        enqueued_line(&t.move, ranks, dtype, 2, shape, from, to);
        enqueued_name(&t.move);
        run_ranks(ranks, body, &t);
    }
    tsr_device_driver_destroy(g.driver);
}

static void moves_of_all_ranks_are_one_graph(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= MOST_RANKS; ranks++) {
        run_moves(ranks, TSR_F32, tsr_shard(0), tsr_shard(1), NULL, play);
        run_moves(ranks, TSR_I8, tsr_shard(1), tsr_replicate(), NULL, play);
    }
}

static void reductions_of_all_ranks_are_one_graph(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= MOST_RANKS; ranks++) {
        run_moves(ranks, TSR_BF16, tsr_partial(TSR_SUM), tsr_shard(0), NULL, play);
        run_moves(ranks, TSR_F32, tsr_partial(TSR_SUM), tsr_replicate(), NULL, play);
    }
}

/* Ranks share what their node has received in a third phase, so they meet in the middle of the
 * call. */
static void phases_of_all_ranks_are_one_graph(void **state)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    (void)state;
    options.nodes.ranks_per_node = 2;
    run_moves(MOST_RANKS, TSR_F32, tsr_partial(TSR_SUM), tsr_replicate(), &options, play);
    run_moves(MOST_RANKS, TSR_F32, tsr_shard(0), tsr_replicate(), &options, play);
}

static void messages_between_rank_threads_are_one_graph(void **state)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    (void)state;
    options.mode = TSR_MODE_MESSAGE;
    run_moves(3, TSR_F32, tsr_shard(0), tsr_shard(1), &options, play);
    run_moves(3, TSR_F16, tsr_partial(TSR_SUM), tsr_replicate(), &options, play);
}

static void captures_of_ranks_apart_are_refused(void **state)
{
    (void)state;
    run_moves(2, TSR_F32, tsr_shard(0), tsr_shard(1), NULL, play_apart);
    run_moves(3, TSR_F32, tsr_partial(TSR_SUM), tsr_replicate(), NULL, play_apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(moves_of_all_ranks_are_one_graph),
        cmocka_unit_test(reductions_of_all_ranks_are_one_graph),
        cmocka_unit_test(phases_of_all_ranks_are_one_graph),
        cmocka_unit_test(messages_between_rank_threads_are_one_graph),
        cmocka_unit_test(captures_of_ranks_apart_are_refused),
    };
    test_watchdog(120);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
