/* Errors where ranks have their memory on devices with streams: all ranks hear of them in words
 * that name the rank and the cause, no rank hangs, nothing races, and the communicator stays usable
 * unless a rank is lost. */
#include "counted_memory.h"
#include "fixture.h"
#include "support.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 24, BYTES = COUNT * 4, HARD = 128 };

/* This rank's two buffers. */
typedef struct buffers {
    int rank;
    tsr_device device;
    tsr_stream stream;
    void *send, *receive;
} buffers;

static tsr_status take(tsr_comm *comm, const fixture *f, buffers *b)
{
    float values[COUNT];
    b->rank = tsr_comm_rank(comm);
    b->device = fixture_device(f, b->rank);
    b->stream = f->device.streams[b->rank];
    for (int i = 0; i < COUNT; i++)
        values[i] = (float)(b->rank + i);
    TSR_TRY(fixture_alloc(f, b->rank, BYTES, &b->send));
    TSR_TRY(fixture_alloc(f, b->rank, BYTES, &b->receive));
    return fixture_put(f, b->rank, b->send, values, BYTES);
}

static void give_back(const fixture *f, const buffers *b)
{
    fixture_free(f, b->rank, b->send, BYTES);
    fixture_free(f, b->rank, b->receive, BYTES);
}

static tsr_status all_reduce(tsr_comm *comm, const buffers *b)
{
    return tsr_comm_all_reduce(comm, b->send, b->receive, COUNT, TSR_F32, TSR_SUM, b->device, b->stream);
}

/* The communicator still moves and reduces there. */
static tsr_status check_usable(tsr_comm *comm, const fixture *f, const buffers *b)
{
    float got[COUNT];
    const int n = tsr_comm_size(comm);
    TSR_TRY(all_reduce(comm, b));
    TSR_TRY(fixture_get(f, b->rank, got, b->receive, BYTES));
    TSR_TRY(fixture_wait(f, b->rank));
    for (int i = 0; i < COUNT; i++)
        CHECK(got[i] == (float)(n * i + n * (n - 1) / 2));
    return TSR_OK;
}

static tsr_status mix_devices(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    float host[2][COUNT] = {{0}};
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    buffers brought = b;
    if (b.rank == 2)
        brought = (buffers){2, tsr_device_host(), NULL, host[0], host[1]};
    CHECK_ERROR(all_reduce(comm, &brought), TSR_ERROR_ARGUMENT, "on host");
    CHECK_ERROR(all_reduce(comm, &brought), TSR_ERROR_ARGUMENT, "rank 2");
    const int n = tsr_comm_size(comm);
    const tsr_message send = {(b.rank + 1) % n, brought.send, BYTES},
                      receive = {(b.rank + n - 1) % n, brought.receive, BYTES};
    CHECK_ERROR(tsr_comm_exchange(comm, &send, 1, &receive, 1, brought.device, brought.stream), TSR_ERROR_ARGUMENT,
                "the memory of rank 0 is on async:0, but that of rank 2 on host");
    TSR_TRY(check_usable(comm, f, &b));
    give_back(f, &b);
    return TSR_OK;
}

static void host_and_device_memory_in_one_call_is_refused(void **state)
{
    (void)state;
    fixture_run(4, (async_options){.devices = 1}, mix_devices, NULL);
}

static tsr_status execute(tsr_comm *comm, const fixture *f, const char *placements, tsr_mode mode, tsr_device device,
                          tsr_stream stream, const char *wanted)
{
    float host[2][COUNT] = {{0}};
    const int64_t shape[] = {COUNT};
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.mode = mode;
    buffers b = {0};
    char mesh[16];
    snprintf(mesh, sizeof mesh, "%d", tsr_comm_size(comm));
    TSR_TRY(take(comm, f, &b));
    TSR_TRY(layout_over(comm, mesh, "24", "P", TSR_F32, &src));
    TSR_TRY(layout_over(comm, mesh, "24", placements, TSR_F32, &dst));
    TSR_TRY(tsr_plan_create(src, dst, &options, &plan));
    TSR_TRY(tsr_plan_prepare(plan, comm));
    tsr_tensor from = tsr_tensor_contiguous(device.driver ? b.send : host[0], TSR_F32, 1, shape), to = from;
    const int64_t count = COUNT / (strcmp(placements, "R") == 0 ? 1 : tsr_comm_size(comm));
    to = tsr_tensor_contiguous(device.driver ? b.receive : host[1], TSR_F32, 1, &count);
    from.device = to.device = device;
    void *workspace = NULL;
    const size_t bytes = tsr_plan_workspace_bytes(plan);
    TSR_TRY(fixture_alloc(f, b.rank, bytes, &workspace));
    CHECK_ERROR(
        tsr_plan_execute(plan, comm, &from, &to, device.driver || bytes == 0 ? workspace : (void *)host, bytes, stream),
        TSR_ERROR_ARGUMENT, wanted);
    fixture_free(f, b.rank, workspace, bytes);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    TSR_TRY(check_usable(comm, f, &b));
    give_back(f, &b);
    return TSR_OK;
}

static tsr_status mix_tensors(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const int rank = tsr_comm_rank(comm);
    const bool odd = rank == 1;
    const char *const wanted = "the memory of rank 0 is on async:0, but that of rank 1 on host";
    const tsr_device device = odd ? tsr_device_host() : fixture_device(f, rank);
    TSR_TRY(execute(comm, f, "S(0)", TSR_MODE_DIRECT, device, odd ? NULL : f->device.streams[rank], wanted));
    return TSR_OK;
}

static void tensors_of_the_host_and_of_devices_in_one_plan_are_refused(void **state)
{
    (void)state;
    fixture_run(3, (async_options){.devices = 1}, mix_tensors, NULL);
}

/* The capture that records each rank's stream, and the error's words. */
typedef struct captures {
    uint64_t id[4];
    const char *wanted;
} captures;

static tsr_status capture_streams(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const captures *c = f->arg;
    const int rank = tsr_comm_rank(comm);
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    TSR_TRY(all_reduce(comm, &b)); /* makes the events outside of any capture */
    TSR_TRY(fixture_wait(f, rank));
    TSR_TRY(tsr_comm_barrier(comm));
    async_capture(f->machine, b.device.index, b.stream, c->id[rank]);
    for (int k = 0; k < 2; k++) {
        if (c->wanted)
            CHECK_ERROR(all_reduce(comm, &b), TSR_ERROR_ARGUMENT, c->wanted);
        else
            TSR_TRY(all_reduce(comm, &b));
    }
    async_capture(f->machine, b.device.index, b.stream, 0);
    TSR_TRY(check_usable(comm, f, &b));
    give_back(f, &b);
    return TSR_OK;
}

static void streams_of_one_capture_are_ordered_within_it(void **state)
{
    (void)state;
    captures c = {{7, 7, 7, 7}, NULL};
    fixture_run(4, (async_options){.devices = 2}, capture_streams, &c);
}

static void captures_that_differ_are_refused_on_every_rank(void **state)
{
    (void)state;
    captures runs = {{7, 7, 0, 7}, "the stream of rank 0 is captured, but that of rank 2 runs"};
    captures captured = {{0, 7, 7, 7}, "the stream of rank 0 runs, but that of rank 1 is captured"};
    captures apart = {{7, 8, 9, 7}, "that of rank 1 is captured apart: fork the streams of all ranks from one capture"};
    fixture_run(4, (async_options){.devices = 1}, capture_streams, &runs);
    fixture_run(4, (async_options){.devices = 1}, capture_streams, &captured);
    fixture_run(4, (async_options){.devices = 2}, capture_streams, &apart);
}

static bool all_but_two_to_zero(int index, int owner)
{
    return !(index == 2 && owner == 0);
}

static tsr_status reach_out(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    const bool unable = b.rank == 2;
    for (int k = 0; k < 2; k++)
        CHECK_ERROR(all_reduce(comm, &b), unable ? TSR_ERROR_UNSUPPORTED : TSR_ERROR_PEER,
                    "async:2, where rank 2 has its memory, does not reach async:0, where rank 0 has its: use devices "
                    "that reach each other, "
                    "or an engine of messages");
    TSR_TRY(tsr_comm_barrier(comm));
    give_back(f, &b);
    return TSR_OK;
}

static void a_pair_of_devices_that_do_not_reach_each_other_is_named(void **state)
{
    (void)state;
    fixture_run(4, (async_options){.devices = 4, .reaches = all_but_two_to_zero}, reach_out, NULL);
}

static tsr_status call_often(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    for (int k = 0; k < 5; k++)
        TSR_TRY(all_reduce(comm, &b));
    give_back(f, &b);
    return TSR_OK;
}

static void a_pair_is_asked_once_whether_it_reaches(void **state)
{
    (void)state;
    fixture f;
    fixture_start(&f, 4, (async_options){.devices = 2});
    run_ranks(4, call_often, &f);
    assert_int_equal(async_count(f.machine, ASYNC_REACHES), 4 * 2); /* two peers of each rank are on the other device */
    assert_int_equal(async_count(f.machine, ASYNC_EVENT_CREATE), 4 * 3);
    assert_int_equal(async_count(f.machine, ASYNC_EVENT_DESTROY), 4 * 3);
    assert_int_equal(async_count(f.machine, ASYNC_SYNCHRONIZE), 0);
    fixture_finish(&f);
}

static tsr_status make_nothing(void *self, int index, void **out)
{
    (void)index;
    *out = self;
    return TSR_OK;
}

static void lose_nothing(void *self, int index, void *thing)
{
    (void)self;
    (void)index;
    (void)thing;
}

static tsr_status settle_nothing(void *self, int index, tsr_stream stream)
{
    (void)self;
    (void)index;
    (void)stream;
    return TSR_OK;
}

static tsr_status order_nothing(void *self, int index, void *event, tsr_stream stream)
{
    (void)event;
    return settle_nothing(self, index, stream);
}

/* What a driver was last asked: whether device `index` reaches the memory of device `owner`. It
 * answers no. */
typedef struct asked {
    int index, owner;
} asked;

static tsr_status never_reach(void *self, int index, int owner, int *out)
{
    *(asked *)self = (asked){index, owner};
    *out = 0;
    return TSR_OK;
}

/* Makes a driver of host memory whose devices reach no other and do nothing. */
static tsr_status create_unreached(asked *self, tsr_device_driver **out)
{
    const tsr_device_table *host;
    TSR_TRY(tsr_device_host_table("portable", &host));
    tsr_device_table table = *host;
    table.name = "unreached";
    table.stream_create = make_nothing;
    table.stream_destroy = lose_nothing;
    table.stream_synchronize = settle_nothing;
    table.event_create = make_nothing;
    table.event_destroy = lose_nothing;
    table.event_record = table.event_wait = order_nothing;
    table.reaches = never_reach;
    return tsr_device_driver_create(&table, self, out);
}

/* Each rank has a driver of its own. The driver of the rank that has the memory is asked. */
static tsr_status ask_drivers(tsr_comm *comm, void *arg)
{
    asked *const all = arg;
    const int rank = tsr_comm_rank(comm);
    float send = 1, receive = 0;
    tsr_device_driver *driver;
    TSR_TRY(create_unreached(&all[rank], &driver));
    const tsr_device device = {driver, rank};
    CHECK_ERROR(tsr_comm_all_reduce(comm, &send, &receive, 1, TSR_F32, TSR_SUM, device, NULL), TSR_ERROR_UNSUPPORTED,
                "does not reach");
    CHECK(all[rank].index == 1 - rank && all[rank].owner == rank);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_device_driver_destroy(driver);
    return TSR_OK;
}

static void the_driver_of_the_memory_is_asked_who_reaches_it(void **state)
{
    (void)state;
    asked all[2] = {{-1, -1}, {-1, -1}};
    run_ranks(2, ask_drivers, all);
}

/* One call of a kind fails, on any rank. This rank gets the device's error, and the others are
 * told. */
static tsr_status fail_once(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    const async_call kind = *(const async_call *)f->arg;
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    for (int64_t nth = 1; nth <= 9; nth++) {
        TSR_TRY(tsr_comm_barrier(comm));
        if (b.rank == 0)
            async_fail(f->machine, kind, nth);
        TSR_TRY(tsr_comm_barrier(comm));
        const tsr_status status = all_reduce(comm, &b);
        const bool own = status == TSR_ERROR_DEVICE || status == TSR_ERROR_MEMORY;
        CHECK(status == TSR_OK || own || status == TSR_ERROR_PEER);
        CHECK(status == TSR_OK || strstr(tsr_status_message(), "was told to fail"));
        TSR_TRY(tsr_comm_barrier(comm));
        if (b.rank == 0)
            async_fail(f->machine, kind, 0);
        /* A rank that fails after the last meeting fails alone, so each rank waits for its stream
         * by itself. */
        TSR_TRY(fixture_wait(f, b.rank));
        TSR_TRY(tsr_comm_barrier(comm));
        TSR_TRY(check_usable(comm, f, &b));
    }
    give_back(f, &b);
    return TSR_OK;
}

static void whatever_fails_once_is_told_and_passes(void **state)
{
    (void)state;
    static const async_call kinds[] = {ASYNC_EVENT_CREATE, ASYNC_EVENT_RECORD, ASYNC_EVENT_WAIT,
                                       ASYNC_REDUCE,       ASYNC_REACHES,      ASYNC_CAPTURE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        async_call kind = kinds[i];
        test_case("%d fails once", (int)kind);
        fixture_run(3, (async_options){.devices = 2, .lazy = i % 2 == 1}, fail_once, &kind);
    }
}

/* Rank 1 has no memory in the first call on a device; the next call succeeds. */
static tsr_status run_short(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    counted_fail_here(b.rank == 1, true);
    const tsr_status status = all_reduce(comm, &b);
    counted_fail_here(0, false);
    CHECK(status == (b.rank == 1 ? TSR_ERROR_MEMORY : TSR_ERROR_PEER));
    TSR_TRY(check_usable(comm, f, &b));
    give_back(f, &b);
    return TSR_OK;
}

static void a_rank_without_memory_for_its_events_is_named_by_the_others(void **state)
{
    (void)state;
    fixture f;
    counted_memory memory = {0};
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = counted_context(&memory);
    fixture_start(&f, 3, (async_options){.devices = 1});
    const tsr_status status = tsr_threads_run(3, run_short, &f, &options);
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(options.context);
    assert_nothing_leaked(&memory);
    fixture_finish(&f);
}

static tsr_status call_with(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    TSR_TRY(all_reduce(comm, &b));
    TSR_TRY(fixture_wait(f, b.rank));
    give_back(f, &b);
    TSR_TRY(tsr_comm_barrier(comm));
    if (b.rank == 0)
        tsr_device_driver_destroy(f->driver);
    return tsr_comm_barrier(comm);
}

static void a_driver_may_go_before_the_communicators_that_have_served_it(void **state)
{
    (void)state;
    fixture f;
    fixture_start(&f, 3, (async_options){.devices = 1});
    run_ranks(3, call_with, &f);
    assert_int_equal(async_count(f.machine, ASYNC_EVENT_DESTROY), 3 * 3);
    f.driver = NULL;
    fixture_finish(&f);
}

/* Rank 0 starts an exchange, and destroys the communicator instead of finishing it. Afterwards each
 * rank uses its memory again. */
static tsr_status go_between(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    tsr_comm *part = NULL;
    buffers b = {0};
    TSR_TRY(take(comm, f, &b));
    TSR_TRY(tsr_comm_split(comm, 0, b.rank, &part));
    const int n = tsr_comm_size(comm);
    const tsr_message send = {(b.rank + 1) % n, b.send, BYTES}, receive = {(b.rank + n - 1) % n, b.receive, BYTES};
    TSR_TRY(tsr_comm_exchange_start(part, &send, 1, &receive, 1, b.device, b.stream));
    if (b.rank > 0)
        CHECK_ERROR(tsr_comm_exchange_finish(part), TSR_ERROR_PEER, NULL);
    else if (*(const int *)f->arg > 0)
        usleep((unsigned)*(const int *)f->arg);
    tsr_comm_destroy(part);
    /* No rank touches these buffers any more, whatever work the streams still have. */
    TSR_TRY(fixture_put(f, b.rank, b.send, &b, sizeof b));
    TSR_TRY(fixture_put(f, b.rank, b.receive, &b, sizeof b));
    TSR_TRY(fixture_wait(f, b.rank));
    TSR_TRY(tsr_comm_barrier(comm));
    give_back(f, &b);
    return TSR_OK;
}

static void a_rank_that_goes_between_the_halves_leaves_nobody_in_its_memory(void **state)
{
    (void)state;
    for (int microseconds = 0; microseconds < 400; microseconds += 20) {
        test_case("rank 0 goes %d microseconds after it has started", microseconds);
        fixture_run(3, (async_options){.devices = 2, .seed = (uint64_t)microseconds, .lazy = microseconds % 40 == 0},
                    go_between, &microseconds);
    }
}

/* A product that takes the device a while. */
static tsr_status work_hard(const fixture *f, int rank, void *memory)
{
    void *self;
    const tsr_device_table *table = tsr_device_driver_table(f->driver, &self);
    const tsr_gemm product = {TSR_GEMM_OF(TSR_F32), .m = HARD,   .n = HARD,   .k = HARD,   .a = memory,
                              .b = memory,          .c = memory, .lda = HARD, .ldb = HARD, .ldc = HARD};
    return table->gemm(self, fixture_device(f, rank).index, &product, f->device.streams[rank]);
}

static int64_t count_copies(const fixture *f)
{
    return async_count(f->machine, ASYNC_COPY) + async_count(f->machine, ASYNC_COPY_BOXES);
}

/* Rank 2 has much to do before it reads rank 1's memory. Rank 1 aborts when the others have come to
 * the end, and itself begins when rank 0, which had nothing to wait for, is gone already. */
static tsr_status come_late(tsr_comm *comm, void *arg)
{
    const fixture *f = arg;
    tsr_comm *part = NULL;
    buffers b = {0};
    void *matrix = NULL;
    TSR_TRY(take(comm, f, &b));
    TSR_TRY(fixture_alloc(f, b.rank, HARD * HARD * 4, &matrix));
    TSR_TRY(tsr_comm_split(comm, 0, b.rank, &part));
    const tsr_message send = {2, b.send, BYTES}, receive = {1, b.receive, BYTES};
    TSR_TRY(tsr_comm_exchange_start(part, &send, b.rank == 1, &receive, b.rank == 2, b.device, b.stream));
    if (b.rank == 2)
        TSR_TRY(work_hard(f, b.rank, matrix));
    const int64_t copies = count_copies(f);
    TSR_TRY(tsr_comm_barrier(comm));
    while (b.rank == 1 && count_copies(f) < copies + 1)
        sched_yield();
    if (b.rank == 1) {
        usleep(1000);
        tsr_comm_abort(part);
        usleep(4000);
    }
    CHECK_ERROR(tsr_comm_exchange_finish(part), TSR_ERROR_PEER, NULL);
    TSR_TRY(fixture_put(f, b.rank, b.send, &b, sizeof b));
    TSR_TRY(fixture_wait(f, b.rank));
    tsr_comm_destroy(part);
    pthread_barrier_wait(f->arg);
    fixture_free(f, b.rank, matrix, HARD * HARD * 4);
    give_back(f, &b);
    return TSR_OK;
}

static void a_rank_that_finds_another_gone_is_left_alone_by_the_rest(void **state)
{
    (void)state;
    pthread_barrier_t end;
    pthread_barrier_init(&end, NULL, 3);
    fixture_run(3, (async_options){.devices = 2, .lazy = true}, come_late, &end);
    pthread_barrier_destroy(&end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_and_device_memory_in_one_call_is_refused),
        cmocka_unit_test(tensors_of_the_host_and_of_devices_in_one_plan_are_refused),
        cmocka_unit_test(streams_of_one_capture_are_ordered_within_it),
        cmocka_unit_test(captures_that_differ_are_refused_on_every_rank),
        cmocka_unit_test(a_pair_of_devices_that_do_not_reach_each_other_is_named),
        cmocka_unit_test(a_pair_is_asked_once_whether_it_reaches),
        cmocka_unit_test(the_driver_of_the_memory_is_asked_who_reaches_it),
        cmocka_unit_test(whatever_fails_once_is_told_and_passes),
        cmocka_unit_test(a_rank_without_memory_for_its_events_is_named_by_the_others),
        cmocka_unit_test(a_driver_may_go_before_the_communicators_that_have_served_it),
        cmocka_unit_test(a_rank_that_goes_between_the_halves_leaves_nobody_in_its_memory),
        cmocka_unit_test(a_rank_that_finds_another_gone_is_left_alone_by_the_rest),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
