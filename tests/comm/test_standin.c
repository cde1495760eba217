/* The stand-in for NCCL: it does what NCCL's guide says, and records what the guide forbids. Sends
 * and receives. */
#include "standin_stage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Rank 0 sends rank 1 `count` words, with the same type on both sides. */
static void send_one(stage *s, size_t sent, ncclDataType_t sent_type, size_t received, ncclDataType_t received_type)
{
    assert_int_equal(API->send(s->buffer[0][0], sent, sent_type, 1, s->comm[0][0], s->stream[0][0]), ncclInProgress);
    assert_int_equal(API->recv(s->buffer[1][1], received, received_type, 0, s->comm[0][1], s->stream[0][1]),
                     ncclInProgress);
    stage_settle(s->comm[0]);
}

static void messages_arrive_when_somebody_waits_and_not_before(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    send_one(&s, WORDS, ncclInt32, WORDS, ncclInt32);
    assert_int_equal(s.buffer[1][1][0], -1);
    assert_true(stage_is_done(&s, 0, 1));
    assert_int_equal(s.buffer[1][1][WORDS - 1], WORDS - 1);
    assert_int_equal(s.buffer[1][1][WORDS], -1);
    expect_none();
    stage_end(&s, 0);
}

/* Both ranks send before they receive, which can complete only inside a group. */
static void swap(stage *s, int grouped)
{
    for (int r = 0; r < 2; r++) {
        if (grouped)
            API->group_start();
        API->send(s->buffer[0][r], WORDS, ncclInt32, 1 - r, s->comm[0][r], s->stream[0][r]);
        stage_settle(s->comm[0]);
        API->recv(s->buffer[1][r], WORDS, ncclInt32, 1 - r, s->comm[0][r], s->stream[0][r]);
        if (grouped)
            assert_int_equal(API->group_end(), ncclInProgress);
        stage_settle(s->comm[0]);
    }
}

static void what_is_to_progress_together_needs_a_group(void **state)
{
    (void)state;
    for (int grouped = 0; grouped < 2; grouped++) {
        stage s;
        stage_begin(&s);
        swap(&s, grouped);
        for (int look = 0; look < 5; look++)
            assert_int_equal(stage_is_done(&s, 0, 0), grouped);
        assert_int_equal(s.buffer[1][0][0], grouped ? 100 : -1);
        expect_none();
        stage_end(&s, !grouped);
    }
}

static void nothing_is_enqueued_before_the_communicator_is_asked(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(stage_sum(&s, 0, r, WORDS, 0), ncclInProgress);
    assert_true(stage_is_done(&s, 0, 0));
    assert_int_equal(s.buffer[1][0][0], -1);
    stage_settle(s.comm[0]);
    assert_true(stage_is_done(&s, 0, 0));
    assert_int_equal(s.buffer[1][0][1], 303);
    expect_none();
    stage_end(&s, 0);
}

static void messages_that_differ_are_misuse(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    send_one(&s, WORDS, ncclInt32, WORDS - 1, ncclInt32);
    stage_is_done(&s, 0, 1);
    expect_misuse("ncclSend of 8 of type 2 from rank 0 meets ncclRecv of 7");
    send_one(&s, WORDS, ncclInt32, WORDS, ncclFloat32);
    stage_is_done(&s, 0, 1);
    expect_misuse("meets ncclRecv of 8 of type 7 on rank 1");
    stage_end(&s, 0);
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
        API->all_reduce(send, receive, what == OTHER_COUNT && odd ? 1 : WORDS,
                        what == OTHER_TYPE && odd ? ncclUint32 : ncclInt32, what == OTHER_OP && odd ? ncclMax : ncclSum,
                        comm, stream);
}

static void collectives_that_differ_are_misuse(void **state)
{
    (void)state;
    for (fault what = 0; what < FAULTS; what++) {
        stage s;
        stage_begin(&s);
        for (int r = 0; r < RANKS; r++)
            call_wrongly(&s, what, r);
        stage_settle(s.comm[0]);
        stage_is_done(&s, 0, 0);
        expect_misuse("rank 0 and rank 2 call different things");
        stage_end(&s, 0);
    }
}

static void a_communicator_that_is_in_progress_is_left_alone(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    for (int r = 0; r < RANKS; r++)
        stage_sum(&s, 0, r, WORDS, 0);
    assert_int_equal(stage_sum(&s, 0, 0, WORDS, 0), ncclInvalidUsage);
    expect_misuse("in progress");
    assert_int_equal(API->comm_finalize(s.comm[0][0]), ncclInvalidUsage);
    expect_misuse("ncclCommFinalize: rank 0's communicator is in progress");
    stage_settle(s.comm[0]);
    stage_is_done(&s, 0, 0);
    stage_end(&s, 0);
}

static void memory_that_the_device_does_not_reach_is_misuse(void **state)
{
    (void)state;
    stage s;
    int32_t words[WORDS];
    void *pinned = NULL;
    stage_begin(&s);
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
    stage_end(&s, 1);
}

static void buffers_overlap_in_place_or_not_at_all(void **state)
{
    (void)state;
    stage s;
    stage_begin(&s);
    for (int r = 0; r < RANKS; r++)
        API->all_gather(s.buffer[1][r] + r * WORDS, s.buffer[1][r], WORDS, ncclInt32, s.comm[0][r], s.stream[0][r]);
    expect_none();
    stage_settle(s.comm[0]);
    stage_is_done(&s, 0, 0);
    API->all_gather(s.buffer[1][0] + WORDS, s.buffer[1][0], WORDS, ncclInt32, s.comm[0][0], s.stream[0][0]);
    expect_misuse("overlap");
    stage_end(&s, 1);
}

/* Rank 0 uses two communicators on two streams: the order of their kernels is undefined unless an
 * event sets it. */
static void kernels_of_a_device_need_an_order(void **state)
{
    (void)state;
    int complaints = 0;
    for (int ordered = 0; ordered < 2; ordered++)
        for (int round = 0; round < 20; round++) {
            stage s;
            cudaEvent_t events[RANKS];
            stage_begin(&s);
            for (int r = 0; r < RANKS; r++) {
                API->cuda_set_device(r);
                API->cuda_event_create_with_flags(&events[r], cudaEventDisableTiming);
                stage_sum(&s, 0, r, WORDS, 0);
                stage_settle(s.comm[0]);
                API->cuda_event_record(events[r], s.stream[0][r]);
                if (ordered)
                    API->cuda_stream_wait_event(s.stream[1][r], events[r], 0);
                stage_sum(&s, 1, r, WORDS, 1);
                stage_settle(s.comm[1]);
            }
            while (!stage_is_done(&s, 0, 0) || !stage_is_done(&s, 1, 0))
                continue;
            const char *misuse = standin_misuse();
            complaints += misuse != NULL;
            if (ordered && misuse)
                fail_msg("%s", misuse);
            for (int r = 0; r < RANKS; r++)
                API->cuda_event_destroy(events[r]);
            stage_end(&s, 0);
        }
    assert_true(complaints > 0);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
