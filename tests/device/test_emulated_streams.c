/* Streams, events and captures of the emulated machine, through the driver where it has them.
 * Enqueued work waits until a thread waits for it, and what CUDA's programming guide forbids in
 * captures is refused. */
#include "emulated_driver.h"

#include <cuda_runtime_api.h>

enum { COUNT = 64, BYTES = COUNT * 4 };

/* Two streams of a device, an event, and memory. */
typedef struct stage {
    machine m;
    tsr_stream stream[2];
    void *event, *other;
    uint32_t *a, *b;
    uint32_t host[COUNT];
} stage;

static void set_up(stage *s)
{
    s->m = start();
    for (int i = 0; i < 2; i++)
        assert_int_equal(s->m.table->stream_create(s->m.self, 0, &s->stream[i]), TSR_OK);
    assert_int_equal(s->m.table->event_create(s->m.self, 0, &s->event), TSR_OK);
    assert_int_equal(s->m.table->event_create(s->m.self, 0, &s->other), TSR_OK);
    assert_int_equal(s->m.table->alloc(s->m.self, 0, BYTES, NULL, (void **)&s->a), TSR_OK);
    assert_int_equal(s->m.table->alloc(s->m.self, 0, BYTES, NULL, (void **)&s->b), TSR_OK);
}

static void take_down(stage *s)
{
    s->m.table->free(s->m.self, 0, s->a, BYTES, NULL);
    s->m.table->free(s->m.self, 0, s->b, BYTES, NULL);
    s->m.table->event_destroy(s->m.self, 0, s->event);
    s->m.table->event_destroy(s->m.self, 0, s->other);
    for (int i = 0; i < 2; i++)
        s->m.table->stream_destroy(s->m.self, 0, s->stream[i]);
    stop(&s->m);
}

static void fill(const stage *s, uint32_t *memory, uint32_t value, int stream)
{
    tsr_box_fill f = {.dst = memory, .element_bytes = 4, .ndim = 1, .shape = {COUNT}, .dst_strides = {1}};
    memcpy(f.value, &value, 4);
    assert_int_equal(s->m.table->fill(s->m.self, 0, &f, s->stream[stream]), TSR_OK);
}

static void copy(const stage *s, uint32_t *to, const uint32_t *from, int stream)
{
    const tsr_box_copy c = {.dst = to,
                            .src = from,
                            .element_bytes = 4,
                            .ndim = 1,
                            .shape = {COUNT},
                            .dst_strides = {1},
                            .src_strides = {1}};
    assert_int_equal(s->m.table->copy_boxes(s->m.self, 0, &c, 1, s->stream[stream]), TSR_OK);
}

static void record(const stage *s, void *event, int stream)
{
    assert_int_equal(s->m.table->event_record(s->m.self, 0, event, s->stream[stream]), TSR_OK);
}

static void wait_for(const stage *s, void *event, int stream)
{
    assert_int_equal(s->m.table->event_wait(s->m.self, 0, event, s->stream[stream]), TSR_OK);
}

/* The value in memory when a stream is done. */
static uint32_t look(stage *s, const uint32_t *memory, int stream)
{
    assert_int_equal(s->m.table->copy(s->m.self, 0, s->host, memory, BYTES, TSR_COPY_TO_HOST, s->stream[stream]),
                     TSR_OK);
    await(&s->m, s->stream[stream]);
    for (int i = 1; i < COUNT; i++)
        assert_int_equal(s->host[i], s->host[0]);
    return s->host[0];
}

static void begin(tsr_stream stream)
{
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
}

static cudaGraph_t end(tsr_stream stream)
{
    cudaGraph_t graph;
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    return graph;
}

/* Ends a capture that gives no graph, and returns the error. */
static cudaError_t end_without(tsr_stream stream)
{
    cudaGraph_t graph = NULL;
    const cudaError_t error = cudaStreamEndCapture(stream, &graph);
    assert_null(graph);
    (void)cudaGetLastError();
    return error;
}

static void events_order_streams(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    for (uint32_t i = 1; i <= 50; i++) {
        fill(&s, s.a, i, 0);
        record(&s, s.event, 0);
        wait_for(&s, s.event, 1);
        copy(&s, s.b, s.a, 1);
        record(&s, s.other, 1);
        wait_for(&s, s.other, 0);
        assert_int_equal(look(&s, s.b, 1), i);
    }
    take_down(&s);
}

static void a_wait_is_for_what_was_recorded_when_it_was_called(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    wait_for(&s, s.event, 1); /* before any record: waits for nothing */
    fill(&s, s.a, 1, 0);
    record(&s, s.event, 0);
    wait_for(&s, s.event, 1);
    copy(&s, s.b, s.a, 1);
    record(&s, s.other, 1);
    wait_for(&s, s.other, 0);
    fill(&s, s.a, 2, 0);
    record(&s, s.event, 0);
    assert_int_equal(look(&s, s.b, 1), 1);
    assert_int_equal(look(&s, s.a, 0), 2);
    take_down(&s);
}

static void streams_of_a_capture_have_its_number(void **state)
{
    tsr_stream stream[3];
    uint64_t id[3] = {7, 7, 7};
    void *event;
    (void)state;
    const machine m = start();
    for (int i = 0; i < 3; i++)
        assert_int_equal(m.table->stream_create(m.self, i == 1, &stream[i]), TSR_OK);
    assert_int_equal(m.table->event_create(m.self, 0, &event), TSR_OK);
    assert_int_equal(m.table->capture(m.self, 0, stream[0], &id[0]), TSR_OK);
    assert_int_equal(id[0], 0);
    begin(stream[0]);
    assert_int_equal(m.table->event_record(m.self, 0, event, stream[0]), TSR_OK);
    assert_int_equal(m.table->event_wait(m.self, 1, event, stream[1]), TSR_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(m.table->capture(m.self, i == 1, stream[i], &id[i]), TSR_OK);
    assert_true(id[0] != 0 && id[1] == id[0] && id[2] == 0);
    cudaGraphDestroy(end(stream[0]));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(m.table->capture(m.self, i == 1, stream[i], &id[i]), TSR_OK);
        assert_int_equal(id[i], 0);
        m.table->stream_destroy(m.self, i == 1, stream[i]);
    }
    m.table->event_destroy(m.self, 0, event);
    stop(&m);
}

static void a_graph_of_two_streams_does_its_work_whenever_it_is_launched(void **state)
{
    stage s;
    cudaGraphExec_t exec;
    (void)state;
    set_up(&s);
    fill(&s, s.b, 7, 0);
    begin(s.stream[0]);
    record(&s, s.event, 0);
    wait_for(&s, s.event, 1);
    copy(&s, s.b, s.a, 1);
    record(&s, s.other, 1);
    wait_for(&s, s.other, 0);
    fill(&s, s.a, 0, 0);
    const cudaGraph_t graph = end(s.stream[0]);
    assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(look(&s, s.b, 0), 7);
    for (uint32_t i = 1; i <= 20; i++) {
        fill(&s, s.a, i, 0);
        assert_int_equal(cudaGraphLaunch(exec, s.stream[0]), cudaSuccess);
        assert_int_equal(look(&s, s.b, 0), i);
        assert_int_equal(look(&s, s.a, 0), 0);
    }
    assert_int_equal(cudaGraphExecDestroy(exec), cudaSuccess);
    take_down(&s);
}

static void work_that_is_not_joined_spoils_a_capture(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    begin(s.stream[0]);
    record(&s, s.event, 0);
    wait_for(&s, s.event, 1);
    fill(&s, s.b, 1, 1);
    assert_int_equal(end_without(s.stream[0]), cudaErrorStreamCaptureUnjoined);
    fill(&s, s.b, 2, 1);
    assert_int_equal(look(&s, s.b, 1), 2);
    take_down(&s);
}

static void events_of_outside_are_not_awaited_inside(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    record(&s, s.event, 1);
    begin(s.stream[0]);
    assert_int_equal(s.m.table->event_wait(s.m.self, 0, s.event, s.stream[0]), TSR_ERROR_DEVICE);
    says("cudaStreamWaitEvent, making a stream wait for an event, failed");
    assert_int_equal(end_without(s.stream[0]), cudaErrorStreamCaptureInvalidated);
    take_down(&s);
}

static void two_captures_do_not_merge(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    begin(s.stream[0]);
    begin(s.stream[1]);
    record(&s, s.event, 0);
    assert_int_equal(s.m.table->event_wait(s.m.self, 0, s.event, s.stream[1]), TSR_ERROR_DEVICE);
    for (int i = 0; i < 2; i++)
        assert_int_equal(end_without(s.stream[i]), cudaErrorStreamCaptureInvalidated);
    take_down(&s);
}

static void waiting_in_a_capture_spoils_it(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    begin(s.stream[0]);
    assert_int_equal(s.m.table->stream_synchronize(s.m.self, 0, s.stream[0]), TSR_ERROR_DEVICE);
    const tsr_box_fill f = {.dst = s.a, .element_bytes = 4, .ndim = 1, .shape = {COUNT}, .dst_strides = {1}};
    assert_int_equal(s.m.table->fill(s.m.self, 0, &f, s.stream[0]), TSR_ERROR_DEVICE);
    assert_int_equal(end_without(s.stream[0]), cudaErrorStreamCaptureInvalidated);
    take_down(&s);
}

static void allocating_in_a_capture_spoils_it(void **state)
{
    stage s;
    void *memory = &memory;
    (void)state;
    set_up(&s);
    begin(s.stream[0]);
    assert_int_equal(s.m.table->alloc(s.m.self, 0, BYTES, s.stream[0], &memory), TSR_ERROR_DEVICE);
    assert_ptr_equal(memory, &memory);
    assert_int_equal(end_without(s.stream[0]), cudaErrorStreamCaptureInvalidated);
    take_down(&s);
}

static void a_capture_ends_where_it_began(void **state)
{
    stage s;
    (void)state;
    set_up(&s);
    assert_int_equal(end_without(s.stream[0]), cudaErrorIllegalState);
    begin(s.stream[0]);
    record(&s, s.event, 0);
    wait_for(&s, s.event, 1);
    assert_int_equal(end_without(s.stream[1]), cudaErrorStreamCaptureUnmatched);
    assert_int_equal(cudaGraphDestroy(end(s.stream[0])), cudaSuccess);
    take_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(events_order_streams),
        TEST(a_wait_is_for_what_was_recorded_when_it_was_called),
        TEST(streams_of_a_capture_have_its_number),
        TEST(a_graph_of_two_streams_does_its_work_whenever_it_is_launched),
        TEST(work_that_is_not_joined_spoils_a_capture),
        TEST(events_of_outside_are_not_awaited_inside),
        TEST(two_captures_do_not_merge),
        TEST(waiting_in_a_capture_spoils_it),
        TEST(allocating_in_a_capture_spoils_it),
        TEST(a_capture_ends_where_it_began),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
