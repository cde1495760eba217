/* The stand-in for NCCL: splitting and destroying communicators, what outlives them, and graphs. */
#include "standin_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void split_all(stage *s, ncclComm_t *made)
{
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(API->comm_split(s->comm[0][r], r == 1 ? NCCL_SPLIT_NOCOLOR : 4, -r, &made[r], NULL),
                         ncclInProgress);
    stage_settle(s->comm[0]);
    stage_settle(made);
}

static void a_split_orders_by_key_and_gives_nothing_without_color(void **state)
{
    (void)state;
    stage s;
    ncclComm_t made[RANKS];
    int rank = -1, size = -1;
    stage_begin(&s);
    split_all(&s, made);
    assert_null(made[1]);
    API->comm_user_rank(made[2], &rank);
    API->comm_count(made[2], &size);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 2);
    for (int r = 0; r < RANKS; r += 2)
        API->comm_finalize(made[r]);
    stage_settle(made);
    API->comm_destroy(made[0]);
    API->comm_destroy(made[2]);
    expect_none();
    stage_end(&s, 0);
}

static void a_split_wants_nothing_under_way_and_a_color(void **state)
{
    (void)state;
    stage s;
    ncclComm_t made = NULL;
    stage_begin(&s);
    stage_sum(&s, 0, 0, WORDS, 0);
    stage_settle(s.comm[0]);
    API->comm_split(s.comm[0][0], 1, 0, &made, NULL);
    expect_misuse("ncclCommSplit: 1 kernels of rank 0 are under way");
    API->comm_split(s.comm[1][0], -5, 0, &made, NULL);
    expect_misuse("ncclCommSplit: color -5");
    stage_end(&s, 1);
}

static void ends_of_communicators_are_told(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    API->comm_finalize(s.comm[0][0]);
    assert_int_equal(stage_sum(&s, 0, 0, WORDS, 0), ncclInvalidUsage);
    expect_misuse("ncclAllReduce: rank 0's communicator is in progress");
    API->comm_destroy(s.comm[0][0]);
    expect_misuse("ncclCommDestroy: rank 0's communicator is not finalized yet");
    assert_int_equal(stage_sum(&s, 0, 0, WORDS, 0), ncclInvalidUsage);
    expect_misuse("a communicator that was destroyed or aborted");
    s.comm[0][0] = NULL;
    API->comm_abort(s.comm[1][1]);
    ncclResult_t error;
    assert_int_equal(API->comm_get_async_error(s.comm[1][1], &error), ncclInvalidArgument);
    expect_misuse("ncclCommGetAsyncError: a communicator that was destroyed or aborted");
    s.comm[1][1] = NULL;
    stage_end(&s, 1);
}

static void aborting_ends_this_ranks_kernels_alone(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    for (int r = 0; r < 2; r++)
        stage_sum(&s, 0, r, WORDS, 0);
    stage_settle(s.comm[0]);
    assert_false(stage_is_done(&s, 0, 0));
    API->comm_abort(s.comm[0][0]);
    s.comm[0][0] = NULL;
    assert_true(stage_is_done(&s, 0, 0));
    assert_false(stage_is_done(&s, 0, 1));
    expect_none();
    stage_end(&s, 1);
}

static void odd_calls_are_misuse(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    assert_int_equal(API->group_end(), ncclInvalidUsage);
    expect_misuse("ncclGroupEnd without ncclGroupStart");
    API->send(s.buffer[0][0], 1, ncclInt32, RANKS, s.comm[0][0], s.stream[0][0]);
    expect_misuse("peer or root 3");
    API->send(s.buffer[0][0], 1, ncclNumTypes, 1, s.comm[0][0], s.stream[0][0]);
    expect_misuse("ncclSend: type 12");
    API->send(s.buffer[0][0], 1, ncclInt32, 1, s.comm[0][0], s.stream[0][1]);
    expect_misuse("ncclSend: no stream of device 0");
    API->send(s.buffer[0][0], 1, ncclInt32, 0, s.comm[0][0], s.stream[0][0]);
    expect_misuse("rank 0 sends to itself");
    API->group_start();
    API->send(s.buffer[0][1], 1, ncclInt32, 0, s.comm[0][1], s.stream[0][1]);
    stage_sum(&s, 0, 1, 1, 0);
    API->group_end();
    expect_misuse("messages and collectives in one group");
    stage_end(&s, 1);
}

static void two_ranks_on_a_device_are_refused_on_all(void **state)
{
    (void)state;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclComm_t comms[2];
    config.blocking = 0;
    standin_begin(1, 3);
    API->get_unique_id(&id);
    API->cuda_set_device(0);
    for (int r = 0; r < 2; r++)
        API->comm_init_rank_config(&comms[r], 2, id, r, &config);
    for (int r = 0; r < 2; r++) {
        while (stage_state(comms[r]) == ncclInProgress)
            continue;
        assert_int_equal(stage_state(comms[r]), ncclInvalidUsage);
        assert_non_null(strstr(API->get_last_error(NULL), "Duplicate GPU detected"));
        API->comm_abort(comms[r]);
    }
    assert_null(standin_end());
}

static void what_is_not_freed_is_told(void **state)
{
    (void)state;
    void *memory = NULL;
    cudaStream_t stream;
    standin_begin(1, 3);
    API->cuda_set_device(0);
    API->cuda_malloc_host(&memory, 10);
    assert_non_null(strstr(standin_end(), "10 bytes of device -1 were not freed"));
    standin_begin(1, 3);
    API->cuda_stream_create_with_flags(&stream, cudaStreamNonBlocking);
    assert_non_null(strstr(standin_end(), "a stream of device 0 was not destroyed"));
    standin_begin(1, 3);
    ncclUniqueId id;
    ncclComm_t comm;
    API->get_unique_id(&id);
    assert_int_equal(API->comm_init_rank_config(&comm, 1, id, 0, NULL), ncclSuccess);
    assert_non_null(strstr(standin_end(), "1 communicators were not destroyed"));
}

/* A program that overwrites the source of a copy, or reads its destination, before the stream is
 * done gets wrong values. */
static void work_of_the_driver_is_late(void **state)
{
    (void)state;
    stage s;
    int32_t host[WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};
    stage_begin(&s);
    assert_int_equal(stage_table(&s)->copy(NULL, 0, s.buffer[1][0], host, BYTES, TSR_COPY_FROM_HOST, s.stream[0][0]),
                     TSR_OK);
    assert_int_equal(s.buffer[1][0][0], -1);
    host[0] = 9;
    assert_int_equal(stage_table(&s)->stream_synchronize(NULL, 0, s.stream[0][0]), TSR_OK);
    assert_int_equal(s.buffer[1][0][0], 9);
    expect_none();
    stage_end(&s, 0);
}

/* Every rank captures one sum of its first buffer. */
static void record_sums(stage *s, standin_graph **graphs)
{
    for (int r = 0; r < RANKS; r++) {
        API->cuda_set_device(r);
        standin_capture_begin(s->stream[0][r]);
        stage_sum(s, 0, r, WORDS, 0);
    }
    stage_settle(s->comm[0]);
    for (int r = 0; r < RANKS; r++) {
        API->cuda_set_device(r);
        graphs[r] = standin_capture_end(s->stream[0][r]);
        assert_non_null(graphs[r]);
    }
}

static void a_graph_does_nothing_until_it_is_launched_and_then_as_often(void **state)
{
    (void)state;
    stage s;
    standin_graph *graphs[RANKS];
    stage_begin(&s);
    record_sums(&s, graphs);
    assert_true(stage_is_done(&s, 0, 0));
    assert_int_equal(s.buffer[1][0][1], -1);
    for (int i = 1; i <= 3; i++) {
        for (int r = 0; r < RANKS; r++) {
            s.buffer[0][r][1] = i * (r + 1);
            API->cuda_set_device(r);
            standin_graph_launch(graphs[r], s.stream[0][r]);
        }
        assert_true(stage_is_done(&s, 0, RANKS - 1));
        assert_int_equal(s.buffer[1][0][1], 6 * i);
    }
    for (int r = 0; r < RANKS; r++)
        standin_graph_destroy(graphs[r]);
    expect_none();
    stage_end(&s, 0);
}

static void captures_are_spoilt_by_waits_allocations_and_events(void **state)
{
    (void)state;
    stage s;
    void *memory = NULL;
    cudaEvent_t event;
    stage_begin(&s);
    API->cuda_set_device(0);
    assert_int_equal(API->cuda_event_create_with_flags(&event, cudaEventDisableTiming), cudaSuccess);
    standin_capture_begin(s.stream[0][0]);
    API->cuda_stream_query(s.stream[1][0]);
    expect_misuse("cudaStreamQuery while a stream of device 0 is captured");
    assert_int_equal(stage_table(&s)->alloc(NULL, 0, 64, s.stream[0][0], &memory), TSR_OK);
    expect_misuse("an allocation while a stream of device 0 is captured");
    API->cuda_event_record(event, s.stream[0][0]);
    expect_misuse("is given an event");
    standin_graph_destroy(standin_capture_end(s.stream[0][0]));
    API->cuda_event_destroy(event);
    stage_table(&s)->free(NULL, 0, memory, 64, NULL);
    stage_end(&s, 0);
}

static void a_broken_network_is_told_by_all(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    standin_break_network(s.comm[0][0], ncclRemoteError);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(stage_state(s.comm[0][r]), ncclRemoteError);
    assert_int_equal(stage_sum(&s, 0, 0, WORDS, 0), ncclRemoteError);
    API->comm_destroy(s.comm[0][1]);
    expect_misuse("it is to be aborted");
    s.comm[0][1] = NULL;
    stage_end(&s, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_split_orders_by_key_and_gives_nothing_without_color),
        cmocka_unit_test(a_split_wants_nothing_under_way_and_a_color),
        cmocka_unit_test(ends_of_communicators_are_told),
        cmocka_unit_test(aborting_ends_this_ranks_kernels_alone),
        cmocka_unit_test(odd_calls_are_misuse),
        cmocka_unit_test(two_ranks_on_a_device_are_refused_on_all),
        cmocka_unit_test(what_is_not_freed_is_told),
        cmocka_unit_test(work_of_the_driver_is_late),
        cmocka_unit_test(a_graph_does_nothing_until_it_is_launched_and_then_as_often),
        cmocka_unit_test(captures_are_spoilt_by_waits_allocations_and_events),
        cmocka_unit_test(a_broken_network_is_told_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
