/* The stand-in for NCCL does what the guide says, and remembers what the guide forbids. One thread plays all ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "standin.h"
#include <tessera/sys/device.h>

enum { RANKS = 3, WORDS = 8, BYTES = WORDS * (int)sizeof(int32_t) };

#define API (&standin_api)

/* Two communicators of all ranks, and two streams and two buffers a rank. */
typedef struct stage {
    ncclComm_t comm[2][RANKS];
    cudaStream_t stream[2][RANKS];
    int32_t *buffer[2][RANKS];
    tsr_device_driver *driver;
} stage;

static ncclResult_t state_of(ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    assert_int_equal(API->comm_get_async_error(comm, &state), ncclSuccess);
    return state;
}

/* Until nothing is in progress. */
static void settle(const ncclComm_t *comms)
{
    for (int look = 0; look < 100; look++) {
        int busy = 0;
        for (int r = 0; r < RANKS; r++)
            busy += comms[r] && state_of(comms[r]) == ncclInProgress;
        if (!busy)
            return;
    }
    fail_msg("a communicator stays in progress");
}

static void make_comms(ncclComm_t *comms)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    config.blocking = 0;
    assert_int_equal(API->get_unique_id(&id), ncclSuccess);
    for (int r = 0; r < RANKS; r++) {
        API->cuda_set_device(r);
        assert_int_equal(API->comm_init_rank_config(&comms[r], RANKS, id, r, &config), ncclInProgress);
    }
    settle(comms);
}

static const tsr_device_table *driver_of(const stage *s)
{
    return tsr_device_driver_table(s->driver, NULL);
}

static void begin(stage *s)
{
    memset(s, 0, sizeof *s);
    standin_begin(RANKS, 7);
    assert_int_equal(standin_driver_create(&s->driver), TSR_OK);
    for (int set = 0; set < 2; set++) {
        make_comms(s->comm[set]);
        for (int r = 0; r < RANKS; r++) {
            API->cuda_set_device(r);
            assert_int_equal(API->cuda_stream_create_with_flags(&s->stream[set][r], cudaStreamNonBlocking), cudaSuccess);
            assert_int_equal(driver_of(s)->alloc(NULL, r, RANKS * BYTES, NULL, (void **)&s->buffer[set][r]), TSR_OK);
            for (int i = 0; i < RANKS * WORDS; i++)
                s->buffer[set][r][i] = set ? -1 : 100 * r + i;
        }
    }
}

static int is_done(const stage *s, int set, int rank)
{
    API->cuda_set_device(rank);
    return API->cuda_stream_query(s->stream[set][rank]) == cudaSuccess;
}

/* Waits for the streams, unless a misuse has left them hanging, and takes everything down. */
static void end(stage *s, int hangs)
{
    for (int set = 0; set < 2; set++)
        for (int r = 0; r < RANKS; r++)
            if (s->comm[set][r])
                hangs ? API->comm_abort(s->comm[set][r]) : API->comm_finalize(s->comm[set][r]);
    for (int set = 0; set < 2; set++) {
        if (!hangs)
            settle(s->comm[set]);
        for (int r = 0; r < RANKS; r++) {
            if (!hangs && s->comm[set][r])
                API->comm_destroy(s->comm[set][r]);
            API->cuda_stream_destroy(s->stream[set][r]);
            driver_of(s)->free(NULL, r, s->buffer[set][r], RANKS * BYTES, NULL);
        }
    }
    tsr_device_driver_destroy(s->driver);
    const char *misuse = standin_end();
    if (misuse)
        fail_msg("in the end: %s", misuse);
}

static void expect_misuse(const char *words)
{
    const char *misuse = standin_misuse();
    if (!misuse || !strstr(misuse, words))
        fail_msg("\"%s\" does not say \"%s\"", misuse ? misuse : "nothing", words);
}

static void expect_none(void)
{
    const char *misuse = standin_misuse();
    if (misuse)
        fail_msg("%s", misuse);
}

static ncclResult_t sum(stage *s, int set, int rank, size_t count, int stream)
{
    return API->all_reduce(s->buffer[0][rank], s->buffer[1][rank], count, ncclInt32, ncclSum, s->comm[set][rank], s->stream[stream][rank]);
}

/* Rank 0 to rank 1, `count` words of a type on both sides. */
static void send_one(stage *s, size_t sent, ncclDataType_t sent_type, size_t received, ncclDataType_t received_type)
{
    assert_int_equal(API->send(s->buffer[0][0], sent, sent_type, 1, s->comm[0][0], s->stream[0][0]), ncclInProgress);
    assert_int_equal(API->recv(s->buffer[1][1], received, received_type, 0, s->comm[0][1], s->stream[0][1]), ncclInProgress);
    settle(s->comm[0]);
}

static void messages_arrive_when_somebody_waits_and_not_before(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    send_one(&s, WORDS, ncclInt32, WORDS, ncclInt32);
    assert_int_equal(s.buffer[1][1][0], -1);
    assert_true(is_done(&s, 0, 1));
    assert_int_equal(s.buffer[1][1][WORDS - 1], WORDS - 1);
    assert_int_equal(s.buffer[1][1][WORDS], -1);
    expect_none();
    end(&s, 0);
}

/* Both ranks send before they receive: only a group lets the two progress together. */
static void swap(stage *s, int grouped)
{
    for (int r = 0; r < 2; r++) {
        if (grouped)
            API->group_start();
        API->send(s->buffer[0][r], WORDS, ncclInt32, 1 - r, s->comm[0][r], s->stream[0][r]);
        settle(s->comm[0]);
        API->recv(s->buffer[1][r], WORDS, ncclInt32, 1 - r, s->comm[0][r], s->stream[0][r]);
        if (grouped)
            assert_int_equal(API->group_end(), ncclInProgress);
        settle(s->comm[0]);
    }
}

static void what_is_to_progress_together_needs_a_group(void **state)
{
    (void)state;
    for (int grouped = 0; grouped < 2; grouped++) {
        stage s;
        begin(&s);
        swap(&s, grouped);
        for (int look = 0; look < 5; look++)
            assert_int_equal(is_done(&s, 0, 0), grouped);
        assert_int_equal(s.buffer[1][0][0], grouped ? 100 : -1);
        expect_none();
        end(&s, !grouped);
    }
}

static void nothing_is_enqueued_before_the_communicator_is_asked(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(sum(&s, 0, r, WORDS, 0), ncclInProgress);
    assert_true(is_done(&s, 0, 0));
    assert_int_equal(s.buffer[1][0][0], -1);
    settle(s.comm[0]);
    assert_true(is_done(&s, 0, 0));
    assert_int_equal(s.buffer[1][0][1], 303);
    expect_none();
    end(&s, 0);
}

static void messages_that_differ_are_misuse(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    send_one(&s, WORDS, ncclInt32, WORDS - 1, ncclInt32);
    is_done(&s, 0, 1);
    expect_misuse("ncclSend of 8 of type 2 from rank 0 meets ncclRecv of 7");
    send_one(&s, WORDS, ncclInt32, WORDS, ncclFloat32);
    is_done(&s, 0, 1);
    expect_misuse("meets ncclRecv of 8 of type 7 on rank 1");
    end(&s, 0);
}

typedef enum fault { OTHER_COUNT, OTHER_OP, OTHER_TYPE, OTHER_ROOT, OTHER_CALL, FAULTS } fault;

static void call_wrongly(stage *s, fault what, int r)
{
    const int odd = r == RANKS - 1;
    const void *send = s->buffer[0][r];
    void *receive = s->buffer[1][r];
    ncclComm_t comm = s->comm[0][r];
    cudaStream_t stream = s->stream[0][r];
    if (what == OTHER_ROOT)
        API->broadcast(send, receive, WORDS, ncclInt32, odd, comm, stream);
    else if (what == OTHER_CALL && odd)
        API->all_gather(send, receive, WORDS, ncclInt32, comm, stream);
    else
        API->all_reduce(send, receive, what == OTHER_COUNT && odd ? 1 : WORDS, what == OTHER_TYPE && odd ? ncclUint32 : ncclInt32,
                        what == OTHER_OP && odd ? ncclMax : ncclSum, comm, stream);
}

static void collectives_that_differ_are_misuse(void **state)
{
    (void)state;
    for (fault what = 0; what < FAULTS; what++) {
        stage s;
        begin(&s);
        for (int r = 0; r < RANKS; r++)
            call_wrongly(&s, what, r);
        settle(s.comm[0]);
        is_done(&s, 0, 0);
        expect_misuse("rank 0 and rank 2 call different things");
        end(&s, 0);
    }
}

static void a_communicator_that_is_in_progress_is_left_alone(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    for (int r = 0; r < RANKS; r++)
        sum(&s, 0, r, WORDS, 0);
    assert_int_equal(sum(&s, 0, 0, WORDS, 0), ncclInvalidUsage);
    expect_misuse("in progress");
    assert_int_equal(API->comm_finalize(s.comm[0][0]), ncclInvalidUsage);
    expect_misuse("ncclCommFinalize: rank 0's communicator is in progress");
    settle(s.comm[0]);
    is_done(&s, 0, 0);
    end(&s, 0);
}

static void memory_that_the_device_does_not_reach_is_misuse(void **state)
{
    (void)state;
    stage s;
    int32_t words[WORDS];
    void *pinned = NULL;
    begin(&s);
    API->broadcast(words, words, WORDS, ncclInt32, 0, s.comm[0][0], s.stream[0][0]);
    expect_misuse("ncclBroadcast: device 0 does not reach");
    API->broadcast(s.buffer[0][0], s.buffer[0][0], WORDS, ncclInt32, 0, s.comm[0][1], s.stream[0][1]);
    expect_misuse("ncclBroadcast: device 1 does not reach");
    API->broadcast(s.buffer[0][2], s.buffer[0][2], RANKS * WORDS + 1, ncclInt32, 0, s.comm[0][2], s.stream[0][2]);
    expect_misuse("ncclBroadcast: device 2 does not reach");
    assert_int_equal(API->cuda_malloc_host(&pinned, BYTES), cudaSuccess);
    API->broadcast(pinned, pinned, WORDS, ncclInt32, 0, s.comm[1][0], s.stream[0][0]);
    expect_none();
    for (int set = 0; set < 2; set++)
        for (int r = 0; r < RANKS; r++) {
            API->comm_abort(s.comm[set][r]);
            s.comm[set][r] = NULL;
        }
    API->cuda_free_host(pinned);
    end(&s, 1);
}

static void buffers_overlap_in_place_or_not_at_all(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    for (int r = 0; r < RANKS; r++)
        API->all_gather(s.buffer[1][r] + r * WORDS, s.buffer[1][r], WORDS, ncclInt32, s.comm[0][r], s.stream[0][r]);
    expect_none();
    settle(s.comm[0]);
    is_done(&s, 0, 0);
    API->all_gather(s.buffer[1][0] + WORDS, s.buffer[1][0], WORDS, ncclInt32, s.comm[0][0], s.stream[0][0]);
    expect_misuse("overlap");
    end(&s, 1);
}

/* Rank 0 gives two communicators two streams: nothing says whose kernel comes first, unless an event does. */
static void kernels_of_a_device_need_an_order(void **state)
{
    (void)state;
    int complaints = 0;
    for (int ordered = 0; ordered < 2; ordered++)
        for (int round = 0; round < 20; round++) {
            stage s;
            cudaEvent_t events[RANKS];
            begin(&s);
            for (int r = 0; r < RANKS; r++) {
                API->cuda_set_device(r);
                API->cuda_event_create_with_flags(&events[r], cudaEventDisableTiming);
                sum(&s, 0, r, WORDS, 0);
                settle(s.comm[0]);
                API->cuda_event_record(events[r], s.stream[0][r]);
                if (ordered)
                    API->cuda_stream_wait_event(s.stream[1][r], events[r], 0);
                sum(&s, 1, r, WORDS, 1);
                settle(s.comm[1]);
            }
            while (!is_done(&s, 0, 0) || !is_done(&s, 1, 0))
                continue;
            const char *misuse = standin_misuse();
            complaints += misuse != NULL;
            if (ordered && misuse)
                fail_msg("%s", misuse);
            for (int r = 0; r < RANKS; r++)
                API->cuda_event_destroy(events[r]);
            end(&s, 0);
        }
    assert_true(complaints > 0);
}

static void split_all(stage *s, ncclComm_t *made)
{
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(API->comm_split(s->comm[0][r], r == 1 ? NCCL_SPLIT_NOCOLOR : 4, -r, &made[r], NULL), ncclInProgress);
    settle(s->comm[0]);
    settle(made);
}

static void a_split_orders_by_key_and_gives_nothing_without_color(void **state)
{
    (void)state;
    stage s;
    ncclComm_t made[RANKS];
    int rank = -1, size = -1;
    begin(&s);
    split_all(&s, made);
    assert_null(made[1]);
    API->comm_user_rank(made[2], &rank);
    API->comm_count(made[2], &size);
    assert_int_equal(rank, 0);
    assert_int_equal(size, 2);
    for (int r = 0; r < RANKS; r += 2)
        API->comm_finalize(made[r]);
    settle(made);
    API->comm_destroy(made[0]);
    API->comm_destroy(made[2]);
    expect_none();
    end(&s, 0);
}

static void a_split_wants_nothing_under_way_and_a_color(void **state)
{
    (void)state;
    stage s;
    ncclComm_t made = NULL;
    begin(&s);
    sum(&s, 0, 0, WORDS, 0);
    settle(s.comm[0]);
    API->comm_split(s.comm[0][0], 1, 0, &made, NULL);
    expect_misuse("ncclCommSplit: 1 kernels of rank 0 are under way");
    API->comm_split(s.comm[1][0], -5, 0, &made, NULL);
    expect_misuse("ncclCommSplit: color -5");
    end(&s, 1);
}

static void ends_of_communicators_are_told(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    API->comm_finalize(s.comm[0][0]);
    assert_int_equal(sum(&s, 0, 0, WORDS, 0), ncclInvalidUsage);
    expect_misuse("ncclAllReduce: rank 0's communicator is in progress");
    API->comm_destroy(s.comm[0][0]);
    expect_misuse("ncclCommDestroy: rank 0's communicator is not finalized yet");
    assert_int_equal(sum(&s, 0, 0, WORDS, 0), ncclInvalidUsage);
    expect_misuse("a communicator that was destroyed or aborted");
    s.comm[0][0] = NULL;
    API->comm_abort(s.comm[1][1]);
    ncclResult_t error;
    assert_int_equal(API->comm_get_async_error(s.comm[1][1], &error), ncclInvalidArgument);
    expect_misuse("ncclCommGetAsyncError: a communicator that was destroyed or aborted");
    s.comm[1][1] = NULL;
    end(&s, 1);
}

static void aborting_ends_this_ranks_kernels_alone(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    for (int r = 0; r < 2; r++)
        sum(&s, 0, r, WORDS, 0);
    settle(s.comm[0]);
    assert_false(is_done(&s, 0, 0));
    API->comm_abort(s.comm[0][0]);
    s.comm[0][0] = NULL;
    assert_true(is_done(&s, 0, 0));
    assert_false(is_done(&s, 0, 1));
    expect_none();
    end(&s, 1);
}

static void odd_calls_are_misuse(void **state)
{
    (void)state;
    stage s;
    begin(&s);
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
    sum(&s, 0, 1, 1, 0);
    API->group_end();
    expect_misuse("messages and collectives in one group");
    end(&s, 1);
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
        while (state_of(comms[r]) == ncclInProgress)
            continue;
        assert_int_equal(state_of(comms[r]), ncclInvalidUsage);
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

/* Whoever overwrites what is to be copied, or reads what was copied, before the stream is done sees that it was too early. */
static void work_of_the_driver_is_late(void **state)
{
    (void)state;
    stage s;
    int32_t host[WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};
    begin(&s);
    assert_int_equal(driver_of(&s)->copy(NULL, 0, s.buffer[1][0], host, BYTES, TSR_COPY_FROM_HOST, s.stream[0][0]), TSR_OK);
    assert_int_equal(s.buffer[1][0][0], -1);
    host[0] = 9;
    assert_int_equal(driver_of(&s)->stream_synchronize(NULL, 0, s.stream[0][0]), TSR_OK);
    assert_int_equal(s.buffer[1][0][0], 9);
    expect_none();
    end(&s, 0);
}

/* Every rank records one sum of what is in its first buffer. */
static void record_sums(stage *s, standin_graph **graphs)
{
    for (int r = 0; r < RANKS; r++) {
        API->cuda_set_device(r);
        standin_capture_begin(s->stream[0][r]);
        sum(s, 0, r, WORDS, 0);
    }
    settle(s->comm[0]);
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
    begin(&s);
    record_sums(&s, graphs);
    assert_true(is_done(&s, 0, 0));
    assert_int_equal(s.buffer[1][0][1], -1);
    for (int i = 1; i <= 3; i++) {
        for (int r = 0; r < RANKS; r++) {
            s.buffer[0][r][1] = i * (r + 1);
            API->cuda_set_device(r);
            standin_graph_launch(graphs[r], s.stream[0][r]);
        }
        assert_true(is_done(&s, 0, RANKS - 1));
        assert_int_equal(s.buffer[1][0][1], 6 * i);
    }
    for (int r = 0; r < RANKS; r++)
        standin_graph_destroy(graphs[r]);
    expect_none();
    end(&s, 0);
}

static void captures_are_spoilt_by_waits_allocations_and_events(void **state)
{
    (void)state;
    stage s;
    void *memory = NULL;
    cudaEvent_t event;
    begin(&s);
    API->cuda_set_device(0);
    assert_int_equal(API->cuda_event_create_with_flags(&event, cudaEventDisableTiming), cudaSuccess);
    standin_capture_begin(s.stream[0][0]);
    API->cuda_stream_query(s.stream[1][0]);
    expect_misuse("cudaStreamQuery while a stream of device 0 is captured");
    assert_int_equal(driver_of(&s)->alloc(NULL, 0, 64, s.stream[0][0], &memory), TSR_OK);
    expect_misuse("an allocation while a stream of device 0 is captured");
    API->cuda_event_record(event, s.stream[0][0]);
    expect_misuse("is given an event");
    standin_graph_destroy(standin_capture_end(s.stream[0][0]));
    API->cuda_event_destroy(event);
    driver_of(&s)->free(NULL, 0, memory, 64, NULL);
    end(&s, 0);
}

static void a_broken_network_is_told_by_all(void **state)
{
    (void)state;
    stage s;
    begin(&s);
    standin_break_network(s.comm[0][0], ncclRemoteError);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(state_of(s.comm[0][r]), ncclRemoteError);
    assert_int_equal(sum(&s, 0, 0, WORDS, 0), ncclRemoteError);
    API->comm_destroy(s.comm[0][1]);
    expect_misuse("it is to be aborted");
    s.comm[0][1] = NULL;
    end(&s, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_arrive_when_somebody_waits_and_not_before),
        cmocka_unit_test(what_is_to_progress_together_needs_a_group),
        cmocka_unit_test(nothing_is_enqueued_before_the_communicator_is_asked),
        cmocka_unit_test(messages_that_differ_are_misuse),
        cmocka_unit_test(collectives_that_differ_are_misuse),
        cmocka_unit_test(a_communicator_that_is_in_progress_is_left_alone),
        cmocka_unit_test(memory_that_the_device_does_not_reach_is_misuse),
        cmocka_unit_test(buffers_overlap_in_place_or_not_at_all),
        cmocka_unit_test(kernels_of_a_device_need_an_order),
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
