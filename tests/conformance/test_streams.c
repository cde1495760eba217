/* What a device with streams does in which order. Each test gives a stream much to do first, so
 * that what is enqueued behind it is still waiting when the next call comes. */
#include "devices.h"
#include "variants.h"

#include <pthread.h>

enum { COUNT = 64, PILE = 24, PILE_BYTES = 1 << 20 };

/* Two streams, on two devices where there are as many, with an event each, and memory. */
typedef struct bench {
    const tsr_device_table *table;
    void *self;
    int at[2]; /* the devices of the streams */
    tsr_stream stream[2];
    void *event[2];
    unsigned char *memory, *pile;
} bench;

static const size_t memory_bytes = COUNT * sizeof(float);

static void *take(const bench *b, size_t bytes)
{
    void *memory = NULL;
    assert_int_equal(b->table->alloc(b->self, 0, bytes, NULL, &memory), TSR_OK);
    return memory;
}

static void wait_for(const bench *b, int i)
{
    assert_int_equal(b->table->stream_synchronize(b->self, b->at[i], b->stream[i]), TSR_OK);
}

static int open_bench(void **state)
{
    static bench b;
    b = (bench){.at = {0, devices_count() - 1}};
    b.table = devices_table(&b.self);
    if (!b.table->stream_create)
        return 0;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(b.table->stream_create(b.self, b.at[i], &b.stream[i]), TSR_OK);
        assert_int_equal(b.table->event_create(b.self, b.at[i], &b.event[i]), TSR_OK);
    }
    b.memory = take(&b, memory_bytes);
    b.pile = take(&b, PILE_BYTES);
    *state = &b;
    return 0;
}

static int close_bench(void **state)
{
    bench *const b = *state;
    if (!b)
        return 0;
    wait_for(b, 0);
    wait_for(b, 1);
    b->table->free(b->self, 0, b->memory, memory_bytes, NULL);
    b->table->free(b->self, 0, b->pile, PILE_BYTES, NULL);
    for (int i = 0; i < 2; i++) {
        if (b->event[i])
            b->table->event_destroy(b->self, b->at[i], b->event[i]);
        b->table->stream_destroy(b->self, b->at[i], b->stream[i]);
    }
    return 0;
}

static const bench *bench_of(void **state)
{
    if (!*state) {
        print_message("the device has no streams: its calls are done on return\n");
        skip();
    }
    return *state;
}

static void fill(const bench *b, int i, void *memory, size_t bytes, unsigned char value)
{
    const tsr_box_fill box = {
        .dst = memory, .element_bytes = 1, .value = {value}, .ndim = 1, .shape = {(int64_t)bytes}, .dst_strides = {1}};
    assert_int_equal(b->table->fill(b->self, b->at[i], &box, b->stream[i]), TSR_OK);
}

static void pile_up(const bench *b, int i)
{
    for (int k = 0; k < PILE; k++)
        fill(b, i, b->pile, PILE_BYTES, 0);
}

static void copy(const bench *b, int i, void *dst, const void *src, size_t bytes, tsr_copy_kind kind)
{
    assert_int_equal(b->table->copy(b->self, b->at[i], dst, src, bytes, kind, b->stream[i]), TSR_OK);
}

/* Records the event of stream `i`. */
static void record(const bench *b, int i)
{
    assert_int_equal(b->table->event_record(b->self, b->at[i], b->event[i], b->stream[i]), TSR_OK);
}

/* Lets stream `i` wait for the event of the other one. */
static void await_other(const bench *b, int i)
{
    assert_int_equal(b->table->event_wait(b->self, b->at[i], b->event[1 - i], b->stream[i]), TSR_OK);
}

static void commands_of_a_stream_are_done_in_their_order(void **state)
{
    const bench *const b = bench_of(state);
    unsigned char *const slots = take(b, COUNT), got[COUNT] = {0};
    pile_up(b, 0);
    for (int k = 0; k < COUNT; k++) {
        fill(b, 0, b->memory, 1, (unsigned char)(k + 1));
        copy(b, 0, slots + k, b->memory, 1, TSR_COPY_WITHIN);
    }
    copy(b, 0, got, slots, COUNT, TSR_COPY_TO_HOST);
    wait_for(b, 0);
    for (int k = 0; k < COUNT; k++)
        if (got[k] != k + 1)
            fail_msg("copy %d of %d came out as %d: commands of a stream were not done in their order", k + 1, COUNT,
                     got[k]);
    b->table->free(b->self, 0, slots, COUNT, NULL);
}

/* Enqueues memory[0] += memory[1], of f32, and spoils the lists that the call was given. */
static void add(const bench *b, int i, float *memory)
{
    const void *src[2] = {memory, memory + 1};
    void *dst[1] = {memory};
    int64_t strides[2][TSR_MAX_DIMS] = {{1}, {1}};
    tsr_box_reduce box = {.dtype = TSR_F32,
                          .op = TSR_SUM,
                          .divisor = 1,
                          .ndim = 1,
                          .shape = {1},
                          .src_count = 2,
                          .dst_count = 1,
                          .src = src,
                          .src_strides = (const int64_t(*)[TSR_MAX_DIMS])strides,
                          .dst = dst,
                          .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])strides};
    assert_int_equal(b->table->reduce(b->self, b->at[i], &box, b->stream[i]), TSR_OK);
    src[0] = src[1] = NULL;
    dst[0] = NULL;
    memset(strides, 0x55, sizeof strides);
    memset(&box, 0, sizeof box);
}

static void arguments_are_read_during_the_call(void **state)
{
    const bench *const b = bench_of(state);
    float values[2] = {0, 1};
    tsr_box_copy boxes[2] = {{.element_bytes = 4, .ndim = 1, .shape = {1}, .dst_strides = {1}, .src_strides = {1}}};
    tsr_box_fill one = {.element_bytes = 4, .ndim = 1, .shape = {1}, .dst_strides = {1}, .value = {0, 0, 0x80, 0x3f}};
    float *const memory = (float *)(void *)b->memory;
    copy(b, 0, memory, values, sizeof values, TSR_COPY_FROM_HOST);
    wait_for(b, 0);
    pile_up(b, 0);
    for (int k = 0; k < COUNT - 1; k++)
        add(b, 0, memory);
    one.dst = memory + 3;
    assert_int_equal(b->table->fill(b->self, b->at[0], &one, b->stream[0]), TSR_OK);
    memset(&one, 0, sizeof one);
    boxes[1] = boxes[0];
    boxes[0].dst = memory + 2, boxes[0].src = memory;
    boxes[1].dst = memory + 1, boxes[1].src = memory + 3;
    assert_int_equal(b->table->copy_boxes(b->self, b->at[0], boxes, 2, b->stream[0]), TSR_OK);
    memset(boxes, 0, sizeof boxes);
    float got[4] = {0};
    copy(b, 0, got, memory, sizeof got, TSR_COPY_TO_HOST);
    wait_for(b, 0);
    const float wanted[4] = {COUNT - 1, 1, COUNT - 1, 1};
    for (int k = 0; k < 4; k++)
        if (got[k] != wanted[k])
            fail_msg("value %d is %g, not %g: a command has not read its arguments during the call", k, (double)got[k],
                     (double)wanted[k]);
}

/* A device that sums in the wrong order or leaves some out is for the part reduce. */
static void an_event_orders_two_streams(void **state)
{
    const bench *const b = bench_of(state);
    for (int k = 0; k < 8; k++) {
        unsigned char got[COUNT] = {0};
        const int from = k % 2, to = 1 - from;
        pile_up(b, from);
        fill(b, from, b->memory, COUNT, (unsigned char)(k + 1));
        record(b, from);
        await_other(b, to);
        copy(b, to, got, b->memory, COUNT, TSR_COPY_TO_HOST);
        wait_for(b, to);
        for (int i = 0; i < COUNT; i++)
            if (got[i] != k + 1)
                fail_msg("a stream that waits for an event has read byte %d before it was written", i);
    }
}

/* The second record is behind a wait for what the first wait holds up: a wait for it would never
 * end. */
static void a_wait_is_for_the_latest_record_before_it(void **state)
{
    const bench *const b = bench_of(state);
    unsigned char got = 0;
    pile_up(b, 0);
    record(b, 0);
    await_other(b, 1);
    fill(b, 1, b->memory, 1, 9);
    record(b, 1);
    await_other(b, 0);
    record(b, 0);
    copy(b, 0, &got, b->memory, 1, TSR_COPY_TO_HOST);
    wait_for(b, 0);
    assert_int_equal(got, 9);
}

static void a_wait_without_a_record_does_nothing(void **state)
{
    const bench *const b = bench_of(state);
    await_other(b, 1);
    wait_for(b, 1);
}

static void an_event_may_be_destroyed_while_a_stream_waits_for_it(void **state)
{
    bench *const b = (bench *)bench_of(state);
    unsigned char got = 0;
    pile_up(b, 0);
    fill(b, 0, b->memory, 1, 5);
    record(b, 0);
    await_other(b, 1);
    b->table->event_destroy(b->self, 0, b->event[0]);
    b->event[0] = NULL;
    copy(b, 1, &got, b->memory, 1, TSR_COPY_TO_HOST);
    wait_for(b, 1);
    assert_int_equal(got, 5);
}

static void memory_is_freed_in_the_order_of_a_stream(void **state)
{
    const bench *const b = bench_of(state);
    unsigned char got[8] = {0};
    pile_up(b, 0);
    for (int k = 0; k < 8; k++) {
        void *memory = NULL;
        assert_int_equal(b->table->alloc(b->self, 0, PILE_BYTES, b->stream[0], &memory), TSR_OK);
        fill(b, 0, memory, PILE_BYTES, (unsigned char)(k + 1));
        copy(b, 0, b->memory + k, (unsigned char *)memory + PILE_BYTES - 1, 1, TSR_COPY_WITHIN);
        b->table->free(b->self, 0, memory, PILE_BYTES, b->stream[0]);
    }
    copy(b, 0, got, b->memory, 8, TSR_COPY_TO_HOST);
    wait_for(b, 0);
    for (int k = 0; k < 8; k++)
        assert_int_equal(got[k], k + 1);
}

static void the_default_stream_is_null(void **state)
{
    bench b = *bench_of(state);
    unsigned char got = 0;
    b.stream[0] = NULL;
    pile_up(&b, 0);
    fill(&b, 0, b.memory, 1, 6);
    copy(&b, 0, &got, b.memory, 1, TSR_COPY_TO_HOST);
    wait_for(&b, 0);
    assert_int_equal(got, 6);
}

/* One of several threads that use the device at once. */
typedef struct user {
    const bench *bench;
    float *memory, values[2];
    tsr_stream stream;
} user;

static void *use(void *arg)
{
    user *const u = arg;
    bench b = *u->bench;
    b.stream[0] = u->stream;
    for (int k = 0; k < 4 * COUNT; k++)
        add(&b, 0, u->memory);
    copy(&b, 0, u->values, u->memory, sizeof u->values, TSR_COPY_TO_HOST);
    wait_for(&b, 0);
    return NULL;
}

static void calls_come_from_many_threads_at_once(void **state)
{
    enum { USERS = 4 };
    const bench *const b = bench_of(state);
    user users[USERS];
    pthread_t threads[USERS];
    for (int u = 0; u < USERS; u++) {
        users[u] = (user){.bench = b, .memory = take(b, sizeof users[u].values), .values = {0, 1}};
        copy(b, 0, users[u].memory, users[u].values, sizeof users[u].values, TSR_COPY_FROM_HOST);
        assert_int_equal(b->table->stream_create(b->self, 0, &users[u].stream), TSR_OK);
    }
    wait_for(b, 0);
    for (int u = 0; u < USERS; u++)
        assert_int_equal(pthread_create(&threads[u], NULL, use, &users[u]), 0);
    for (int u = 0; u < USERS; u++) {
        pthread_join(threads[u], NULL);
        assert_true(users[u].values[0] == 4 * COUNT);
        b->table->stream_destroy(b->self, 0, users[u].stream);
        b->table->free(b->self, 0, users[u].memory, sizeof users[u].values, NULL);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_bench, close_bench)

int devices_streams(void)
{
    const struct CMUnitTest tests[] = {
        TEST(commands_of_a_stream_are_done_in_their_order),
        TEST(arguments_are_read_during_the_call),
        TEST(an_event_orders_two_streams),
        TEST(a_wait_is_for_the_latest_record_before_it),
        TEST(a_wait_without_a_record_does_nothing),
        TEST(an_event_may_be_destroyed_while_a_stream_waits_for_it),
        TEST(memory_is_freed_in_the_order_of_a_stream),
        TEST(the_default_stream_is_null),
        TEST(calls_come_from_many_threads_at_once),
    };
    return cmocka_run_group_tests_name("streams", tests, NULL, NULL);
}
