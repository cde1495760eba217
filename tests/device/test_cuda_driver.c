/* The CUDA driver over the emulated machine: its devices, memory, streams and errors. */
#include "emulated_driver.h"
#include "reference.h"
#include "variants.h"

#include <tessera/cuda.h>

#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>

static void a_machine_without_a_driver_has_no_devices_and_says_why(void **state)
{
    void *memory = &memory;
    const char *reason;
    int count = -1;
    (void)state;
    emulated_machine(0, 0);
    const machine m = start();
    assert_int_equal(m.table->count(m.self, &count, &reason), TSR_OK);
    assert_int_equal(count, 0);
    assert_non_null(strstr(reason, "no CUDA driver is installed"));
    assert_int_equal(m.table->alloc(m.self, 0, 64, NULL, &memory), TSR_ERROR_UNAVAILABLE);
    says("there is no device 0");
    says("no CUDA driver is installed");
    assert_ptr_equal(memory, &memory);
    stop(&m);
}

static void devices_beyond_the_last_are_refused(void **state)
{
    const char *reason = "";
    void *memory;
    int count;
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->count(m.self, &count, &reason), TSR_OK);
    assert_int_equal(count, EMULATED_GPUS);
    assert_null(reason);
    assert_int_equal(m.table->alloc(m.self, 2, 64, NULL, &memory), TSR_ERROR_UNAVAILABLE);
    says("there are 0 to 1");
    assert_int_equal(m.table->alloc(m.self, -1, 64, NULL, &memory), TSR_ERROR_UNAVAILABLE);
    stop(&m);
}

static void a_driver_that_was_never_used_opens_nothing(void **state)
{
    (void)state;
    const int alive = emulated_alive();
    const machine m = start();
    assert_int_equal(emulated_alive(), alive);
    stop(&m);
}

/* What the calls of one device need, in tests that let each call fail. */
typedef struct work {
    void *a, *b, *c, *event;
    tsr_stream stream;
} work;

static tsr_status multiply(const machine *m, const work *w)
{
    const tsr_gemm gemm = {TSR_GEMM_OF(TSR_F32),
                           .m = 2,
                           .n = 2,
                           .k = 2,
                           .alpha = 1,
                           .a = w->a,
                           .b = w->b,
                           .c = w->c,
                           .lda = 2,
                           .ldb = 2,
                           .ldc = 2,
                           .bias = w->b};
    return m->table->gemm(m->self, 0, &gemm, w->stream);
}

static tsr_status add(const machine *m, const work *w)
{
    const void *const src[2] = {w->a, w->b};
    void *const dst[1] = {w->c};
    const int64_t strides[2][TSR_MAX_DIMS] = {{1}, {1}};
    const tsr_box_reduce reduce = {.dtype = TSR_F32,
                                   .divisor = 1,
                                   .ndim = 1,
                                   .shape = {16},
                                   .src_count = 2,
                                   .dst_count = 1,
                                   .src = src,
                                   .src_strides = strides,
                                   .dst = dst,
                                   .dst_strides = strides};
    return m->table->reduce(m->self, 0, &reduce, w->stream);
}

static tsr_status compute(const machine *m, work *w)
{
    const tsr_device_table *const t = m->table;
    const tsr_box_fill fill = {.dst = w->a, .element_bytes = 4, .ndim = 1, .shape = {16}, .dst_strides = {1}};
    const tsr_box_copy box = {
        .dst = w->b, .src = w->a, .element_bytes = 4, .ndim = 1, .shape = {16}, .dst_strides = {1}, .src_strides = {1}};
    static float host[16];
    uint64_t id;
    TSR_TRY(t->fill(m->self, 0, &fill, w->stream));
    TSR_TRY(t->copy_boxes(m->self, 0, &box, 1, w->stream));
    TSR_TRY(t->convert(m->self, 0, w->c, TSR_F16, w->a, TSR_F32, 16, w->stream));
    TSR_TRY(add(m, w));
    TSR_TRY(multiply(m, w));
    TSR_TRY(t->event_record(m->self, 0, w->event, w->stream));
    TSR_TRY(t->event_wait(m->self, 0, w->event, w->stream));
    TSR_TRY(t->capture(m->self, 0, w->stream, &id));
    TSR_TRY(t->copy(m->self, 0, host, w->c, sizeof host, TSR_COPY_TO_HOST, w->stream));
    return t->stream_synchronize(m->self, 0, w->stream);
}

static tsr_status acquire_memory(const machine *m, work *w)
{
    TSR_TRY(m->table->stream_create(m->self, 0, &w->stream));
    TSR_TRY(m->table->event_create(m->self, 0, &w->event));
    TSR_TRY(m->table->alloc(m->self, 0, 64, w->stream, &w->a));
    TSR_TRY(m->table->alloc(m->self, 0, 64, NULL, &w->b));
    return m->table->alloc(m->self, 0, 64, w->stream, &w->c);
}

static tsr_status acquire(const machine *m, work *w)
{
    TSR_TRY(acquire_memory(m, w));
    return compute(m, w);
}

static void release(const machine *m, const work *w)
{
    m->table->free(m->self, 0, w->a, 64, w->stream);
    m->table->free(m->self, 0, w->b, 64, NULL);
    m->table->free(m->self, 0, w->c, 64, w->stream);
    m->table->event_destroy(m->self, 0, w->event);
    m->table->stream_destroy(m->self, 0, w->stream);
}

/* Makes a driver, makes every call of a device, and lets another device reach the first. */
static tsr_status everything(void)
{
    machine m;
    work w = {0};
    void *there = NULL;
    int reaches;
    TSR_TRY(tsr_cuda_driver_create(NULL, NULL, &m.driver));
    m.table = tsr_device_driver_table(m.driver, &m.self);
    tsr_status status = acquire(&m, &w);
    if (status == TSR_OK)
        status = m.table->alloc(m.self, 1, 64, NULL, &there);
    if (status == TSR_OK)
        status = m.table->reaches(m.self, 0, 1, &reaches);
    emulated_heal(GIB);
    m.table->free(m.self, 1, there, 64, NULL);
    release(&m, &w);
    tsr_device_driver_destroy(m.driver);
    return status;
}

static int calls_of_everything(void)
{
    const int before = emulated_calls();
    assert_int_equal(everything(), TSR_OK);
    return emulated_calls() - before;
}

static void every_call_that_fails_is_named_and_leaves_nothing_behind(void **state)
{
    const int calls = calls_of_everything();
    (void)state;
    assert_int_equal(emulated_alive(), 0);
    for (int k = 0; k < calls; k++) {
        emulated_fail(k, EMULATED_INVALID_VALUE);
        const tsr_status status = everything();
        const char *const call = emulated_failed_call();
        if (status != TSR_OK &&
            (!call || !strstr(tsr_status_message(), call) || !strstr(tsr_status_message(), "failed: ")))
            fail_msg("call %d, %s, failed and this was said: %s", k, call ? call : "none", tsr_status_message());
        if (emulated_alive() != 0)
            fail_msg("after call %d, %s, failed, %d objects are left", k, call ? call : "none", emulated_alive());
        emulated_heal(GIB);
    }
    assert_int_equal(calls_of_everything(), calls);
}

/* True if the call's error can say that the context is lost: it is no count of devices, which needs
 * no context, and no call of cuBLASLt, which does not say why it fails. */
static bool tells_of_contexts(const char *sentence)
{
    return !strstr(sentence, "cudaGetDeviceCount") && !strstr(sentence, "cublas");
}

/* Calls that cannot report a failure, as when memory is freed, do no harm. */
static void whatever_call_finds_the_context_lost_says_so(void **state)
{
    const int calls = calls_of_everything();
    (void)state;
    for (int k = 0; k < calls; k++) {
        emulated_fail(k, EMULATED_ILLEGAL_ADDRESS);
        const tsr_status status = everything();
        const bool told = status == TSR_ERROR_DEVICE && strstr(tsr_status_message(), "the CUDA context is lost");
        if (status != TSR_OK && !told && tells_of_contexts(tsr_status_message()))
            fail_msg("call %d, %s, lost the context and this was said: %s", k, emulated_failed_call(),
                     tsr_status_message());
        if (emulated_alive() != 0)
            fail_msg("after call %d, %s, lost the context, %d objects are left", k, emulated_failed_call(),
                     emulated_alive());
    }
}

static void memory_that_runs_out_in_any_call_leaves_all_usable(void **state)
{
    (void)state;
    const machine m = start();
    work w = {0};
    assert_int_equal(acquire(&m, &w), TSR_OK);
    release(&m, &w);
    const int alive = emulated_alive(), before = emulated_calls();
    assert_int_equal(acquire(&m, &w), TSR_OK);
    const int calls = emulated_calls() - before;
    release(&m, &w);
    for (int k = 0; k < calls; k++) {
        w = (work){0};
        emulated_fail(k, EMULATED_NO_MEMORY);
        const tsr_status status = acquire(&m, &w);
        if (status != TSR_OK && status != TSR_ERROR_MEMORY && !strstr(emulated_failed_call(), "cublas"))
            fail_msg("call %d, %s, had no memory and this was said: %s", k, emulated_failed_call(),
                     tsr_status_message());
        emulated_heal(GIB);
        release(&m, &w);
        w = (work){0};
        if (acquire(&m, &w) != TSR_OK || (release(&m, &w), emulated_alive() != alive))
            fail_msg("after call %d had no memory: %s", k, tsr_status_message());
    }
    stop(&m);
}

static void an_error_that_loses_the_context_is_told_apart(void **state)
{
    void *memory;
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->alloc(m.self, 0, 64, NULL, &memory), TSR_OK);
    emulated_fail(1, EMULATED_ILLEGAL_ADDRESS);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_ERROR_DEVICE);
    says("cudaStreamSynchronize");
    says("waiting for a stream");
    says("cudaErrorIllegalAddress");
    says("an illegal memory access was encountered");
    says("the CUDA context is lost");
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_ERROR_DEVICE);
    emulated_heal(GIB);
    emulated_fail(1, EMULATED_INVALID_VALUE);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_ERROR_DEVICE);
    assert_null(strstr(tsr_status_message(), "lost"));
    m.table->free(m.self, 0, memory, 64, NULL);
    stop(&m);
}

static void a_device_without_memory_says_how_much_there_is_and_stays_usable(void **state)
{
    void *half, *memory = &memory;
    (void)state;
    emulated_heal(1000);
    const machine m = start();
    assert_int_equal(m.table->alloc(m.self, 0, 600, NULL, &half), TSR_OK);
    assert_int_equal(m.table->alloc(m.self, 0, 600, NULL, &memory), TSR_ERROR_MEMORY);
    says("600 bytes on device 0, where 400 of 1000 are free");
    assert_ptr_equal(memory, &memory);
    /* The pool gives back freed memory that it kept before an allocation is refused. */
    m.table->free(m.self, 0, half, 600, NULL);
    assert_int_equal(m.table->alloc(m.self, 0, 900, NULL, &memory), TSR_OK);
    m.table->free(m.self, 0, memory, 900, NULL);
    assert_int_equal(m.table->alloc(m.self, 0, SIZE_MAX / 2, NULL, &memory), TSR_ERROR_MEMORY);
    stop(&m);
}

static void memory_without_a_stream_waits_and_with_one_does_not(void **state)
{
    tsr_stream stream;
    void *memory;
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->stream_create(m.self, 0, &stream), TSR_OK);
    const int before = emulated_host_waits();
    assert_int_equal(m.table->alloc(m.self, 0, 0, stream, &memory), TSR_OK);
    m.table->free(m.self, 0, memory, 0, stream);
    assert_int_equal(emulated_host_waits(), before);
    assert_int_equal(m.table->alloc(m.self, 0, 64, NULL, &memory), TSR_OK);
    assert_int_equal(emulated_host_waits(), before + 1);
    m.table->free(m.self, 0, memory, 64, NULL);
    assert_int_equal(emulated_host_waits(), before + 2);
    m.table->free(m.self, 0, NULL, 0, NULL);
    assert_int_equal(emulated_host_waits(), before + 2);
    m.table->stream_destroy(m.self, 0, stream);
    stop(&m);
}

/* The work is in a stream that the program made, and that stays. */
static void a_driver_that_goes_waits_for_what_its_devices_were_given(void **state)
{
    uint32_t theirs[4] = {0};
    cudaStream_t stream;
    tsr_box_fill f = {.dst = theirs, .element_bytes = 4, .value = {7}, .ndim = 1, .shape = {4}, .dst_strides = {1}};
    (void)state;
    const machine m = start();
    assert_int_equal(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
    assert_int_equal(m.table->fill(m.self, 0, &f, stream), TSR_OK);
    tsr_device_driver_destroy(m.driver);
    assert_int_equal(theirs[3], 7);
    assert_int_equal(cudaStreamDestroy(stream), cudaSuccess);
    assert_int_equal(emulated_alive(), 0);
}

typedef struct user {
    const machine *machine;
    int index;
    tsr_status status;
} user;

/* The work of one thread: it uses both devices alternately. */
static void *use_devices(void *arg)
{
    user *const u = arg;
    const machine *const m = u->machine;
    for (int i = 0; i < 50 && u->status == TSR_OK; i++) {
        const int index = (u->index + i) % EMULATED_GPUS;
        const tsr_box_fill fill = {.element_bytes = 4, .value = {1}, .ndim = 1, .shape = {16}, .dst_strides = {1}};
        tsr_box_fill here = fill;
        u->status = m->table->alloc(m->self, index, 64, NULL, &here.dst);
        if (u->status != TSR_OK)
            break;
        const work w = {.a = here.dst, .b = here.dst, .c = here.dst};
        u->status = m->table->fill(m->self, index, &here, NULL);
        if (u->status == TSR_OK && index == 0)
            u->status = multiply(m, &w);
        m->table->free(m->self, index, here.dst, 64, NULL);
    }
    return NULL;
}

static void threads_may_open_and_use_the_devices_at_once(void **state)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    user users[THREADS];
    (void)state;
    const machine m = start();
    for (int i = 0; i < THREADS; i++) {
        users[i] = (user){.machine = &m, .index = i};
        assert_int_equal(pthread_create(&threads[i], NULL, use_devices, &users[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(users[i].status, TSR_OK);
    }
    stop(&m);
}

static void a_batch_of_boxes_is_one_launch_until_it_is_full(void **state)
{
    enum { BOXES = 500, SIDE = 5 };
    static unsigned char src[BOXES][64], dst[BOXES][64];
    static tsr_box_copy boxes[BOXES];
    uint64_t seed = seed_of(11);
    (void)state;
    draw_bytes(&seed, src, sizeof src);
    for (int i = 0; i < BOXES; i++)
        boxes[i] = (tsr_box_copy){.dst = dst[i],
                                  .src = src[i],
                                  .element_bytes = 1,
                                  .ndim = 3,
                                  .shape = {2, 3, SIDE},
                                  .dst_strides = {32, 8, 1},
                                  .src_strides = {25, SIDE, 1}};
    const machine m = start();
    const int counts[] = {1, 24, 25, 200, 201, BOXES}, launches[] = {1, 1, 1, 1, 2, 3};
    for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++) {
        const int before = emulated_launches();
        memset(dst, 0, sizeof dst);
        assert_int_equal(m.table->copy_boxes(m.self, 0, boxes, (size_t)counts[c], NULL), TSR_OK);
        assert_int_equal(emulated_launches() - before, launches[c]);
        await(&m, NULL);
        for (int i = 0; i < counts[c]; i++)
            for (int e = 0; e < 2 * 3 * SIDE; e++)
                assert_int_equal(dst[i][e / 15 * 32 + e % 15 / SIDE * 8 + e % SIDE], src[i][e / 15 * 25 + e % 15]);
    }
    const int before = emulated_launches();
    boxes[0].shape[1] = 0;
    assert_int_equal(m.table->copy_boxes(m.self, 0, boxes, 1, NULL), TSR_OK);
    assert_int_equal(m.table->copy_boxes(m.self, 0, NULL, 0, NULL), TSR_OK);
    assert_int_equal(emulated_launches(), before);
    stop(&m);
}

static void reductions_of_more_operands_than_a_launch_takes_are_refused_with_the_number(void **state)
{
    enum { MOST = 600 };
    static uint8_t values[MOST][1], sum[1];
    static const void *src[MOST];
    static int64_t strides[MOST][TSR_MAX_DIMS];
    void *const dst[1] = {sum};
    (void)state;
    for (int i = 0; i < MOST; i++) {
        values[i][0] = (uint8_t)i;
        src[i] = values[i];
    }
    tsr_box_reduce reduce = {.dtype = TSR_U8,
                             .divisor = 1,
                             .ndim = 1,
                             .shape = {1},
                             .src_count = MOST,
                             .dst_count = 1,
                             .src = src,
                             .src_strides = (const int64_t(*)[TSR_MAX_DIMS])strides,
                             .dst = dst,
                             .dst_strides = (const int64_t(*)[TSR_MAX_DIMS])strides};
    const machine m = start();
    assert_int_equal(m.table->reduce(m.self, 0, &reduce, NULL), TSR_OK);
    await(&m, NULL);
    assert_int_equal(sum[0], (uint8_t)(MOST * (MOST - 1) / 2));
    reduce.shape[0] = 2;
    assert_int_equal(m.table->reduce(m.self, 0, &reduce, NULL), TSR_ERROR_UNSUPPORTED);
    says("600 sources to 1 destinations");
    says("500 together");
    stop(&m);
}

static void divisions_by_multiplication_are_exact(void **state)
{
    const unsigned most = 1u << 30;
    uint64_t seed = seed_of(12);
    (void)state;
    for (unsigned value = 1; value <= 4096; value++)
        for (unsigned k = 0; k < 64; k++) {
            const unsigned quotient = (unsigned)(draw(&seed) % (most / value)), below = quotient * value;
            if (!emulated_division_is_exact(value, below) ||
                (below > 0 && !emulated_division_is_exact(value, below - 1)))
                fail_msg("%u or the one before, divided by %u", below, value);
        }
    for (int i = 0; i < 1000000; i++) {
        const unsigned value = (1 + (unsigned)(draw(&seed) % most)) >> (draw(&seed) % 30),
                       index = (unsigned)(draw(&seed) % most);
        if (!emulated_division_is_exact(value > 0 ? value : 1, index) || !emulated_division_is_exact(most, index))
            fail_msg("%u divided by %u", index, value);
    }
}

static void a_product_nobody_can_compute_is_refused(void **state)
{
    static float a[14 * 14], c[14 * 14];
    (void)state;
    const machine m = start();
    for (int n = 13; n <= 14; n++) {
        const tsr_gemm gemm = {TSR_GEMM_OF(TSR_F32),
                               .m = n,
                               .n = n,
                               .k = n,
                               .alpha = 1,
                               .a = a,
                               .b = a,
                               .c = c,
                               .lda = n,
                               .ldb = n,
                               .ldc = n};
        assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_ERROR_UNSUPPORTED);
        says(n == 13 ? "[13,13] x [13,13]" : "[14,14] x [14,14]");
    }
    stop(&m);
}

/* The capture of a stream, which ends without a graph to keep. */
static void begin_capture(tsr_stream stream)
{
    assert_int_equal(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
}

static void end_capture(tsr_stream stream)
{
    cudaGraph_t graph;
    assert_int_equal(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
}

static void a_product_is_captured_once_the_device_has_been_asked_for_its_workspace(void **state)
{
    const tsr_gemm some = {TSR_GEMM_OF(TSR_F32), .m = 2, .n = 2, .k = 2, .alpha = 1, .lda = 2, .ldb = 2, .ldc = 2};
    size_t bytes;
    work w = {0};
    (void)state;
    const machine m = start();
    assert_int_equal(acquire_memory(&m, &w), TSR_OK);
    begin_capture(w.stream);
    assert_int_equal(multiply(&m, &w), TSR_ERROR_STATE);
    says("before the capture begins");
    end_capture(w.stream);
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &some, &bytes), TSR_OK);
    begin_capture(w.stream);
    const int waits = emulated_host_waits(), alive = emulated_alive();
    assert_int_equal(multiply(&m, &w), TSR_OK);
    assert_int_equal(emulated_host_waits(), waits);
    assert_int_equal(emulated_alive(), alive);
    end_capture(w.stream);
    release(&m, &w);
    stop(&m);
}

static void a_driver_describes_itself_and_its_devices(void **state)
{
    tsr_cuda_versions versions = {sizeof versions, 0, 0, 0, 0};
    tsr_cuda_device_info info = {.size = sizeof info};
    struct {
        size_t size;
        int built, kept;
    } older = {offsetof(tsr_cuda_versions, runtime), 0, -1};
    (void)state;
    const machine m = start();
    assert_int_equal(tsr_cuda_versions_get(&versions), TSR_OK);
    assert_true(versions.built >= 12080 && versions.runtime >= 12080 && versions.cublaslt == 130002);
    assert_int_equal(tsr_cuda_versions_get((tsr_cuda_versions *)&older), TSR_OK);
    assert_true(older.built == versions.built && older.kept == -1);
    assert_int_equal(tsr_cuda_device_describe(m.driver, 1, &info), TSR_OK);
    assert_string_equal(info.name, "emulated 1");
    assert_true(info.major == 9 && info.memory_bytes == (int64_t)GIB && info.multiprocessors == 132);
    assert_int_equal(tsr_cuda_device_describe(m.driver, 2, &info), TSR_ERROR_UNAVAILABLE);
    assert_int_equal(tsr_cuda_device_describe(NULL, 0, &info), TSR_ERROR_ARGUMENT);
    says("\"host\"");
    stop(&m);
}

static void null_arguments_and_unknown_sizes_are_refused(void **state)
{
    const tsr_cuda_options newer = {sizeof newer + 8, 0};
    tsr_device_driver *driver;
    tsr_cuda_versions none = {0};
    int reaches;
    (void)state;
    assert_int_equal(tsr_cuda_driver_create(NULL, NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cuda_driver_create(NULL, &newer, &driver), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cuda_versions_get(NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cuda_versions_get(&none), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cuda_device_describe(NULL, 0, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cuda_reaches(NULL, 0, 0, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cuda_reaches(NULL, 0, 0, &reaches), TSR_ERROR_ARGUMENT);
}

static void copies_of_no_kind_are_refused(void **state)
{
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->copy(m.self, 0, NULL, NULL, 0, (tsr_copy_kind)3, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(m.table->copy(m.self, 0, NULL, NULL, 0, TSR_COPY_FROM_HOST, NULL), TSR_OK);
    stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_machine_without_a_driver_has_no_devices_and_says_why),
        TEST(devices_beyond_the_last_are_refused),
        TEST(a_driver_that_was_never_used_opens_nothing),
        TEST(every_call_that_fails_is_named_and_leaves_nothing_behind),
        TEST(whatever_call_finds_the_context_lost_says_so),
        TEST(memory_that_runs_out_in_any_call_leaves_all_usable),
        TEST(an_error_that_loses_the_context_is_told_apart),
        TEST(a_device_without_memory_says_how_much_there_is_and_stays_usable),
        TEST(memory_without_a_stream_waits_and_with_one_does_not),
        TEST(a_driver_that_goes_waits_for_what_its_devices_were_given),
        TEST(threads_may_open_and_use_the_devices_at_once),
        TEST(a_batch_of_boxes_is_one_launch_until_it_is_full),
        TEST(reductions_of_more_operands_than_a_launch_takes_are_refused_with_the_number),
        TEST(divisions_by_multiplication_are_exact),
        TEST(a_product_nobody_can_compute_is_refused),
        TEST(a_product_is_captured_once_the_device_has_been_asked_for_its_workspace),
        TEST(a_driver_describes_itself_and_its_devices),
        TEST(null_arguments_and_unknown_sizes_are_refused),
        TEST(copies_of_no_kind_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
