/* libtessera-cuda on this machine: what it says without a GPU, and what it does with one. */
#include "reference.h"
#include "variants.h"

#include <tessera/cuda.h>

typedef struct library {
    tsr_device_driver *driver;
    const tsr_device_table *table;
    void *self;
    int count;
    const char *reason;
} library;

static library open_library(void)
{
    library l;
    assert_int_equal(tsr_cuda_driver_create(NULL, NULL, &l.driver), TSR_OK);
    l.table = tsr_device_driver_table(l.driver, &l.self);
    assert_int_equal(l.table->count(l.self, &l.count, &l.reason), TSR_OK);
    return l;
}

/* Skips the test where there are not as many GPUs. */
static library open_gpus(int wanted)
{
    const library l = open_library();
    if (l.count < wanted) {
        print_message("%d CUDA devices, not %d: %s\n", l.count, wanted,
                      l.count == 0 ? l.reason : "this machine has no more");
        tsr_device_driver_destroy(l.driver);
        skip();
    }
    return l;
}

static void *allocate(const library *l, int index, size_t bytes)
{
    void *memory;
    assert_int_equal(l->table->alloc(l->self, index, bytes, NULL, &memory), TSR_OK);
    return memory;
}

static void versions_are_known_everywhere(void **state)
{
    tsr_cuda_versions versions = {sizeof versions, 0, 0, -1, 0};
    (void)state;
    assert_int_equal(tsr_cuda_versions_get(&versions), TSR_OK);
    assert_true(versions.built >= 12080 && versions.runtime >= 12080);
    assert_true(versions.driver >= 0 && versions.cublaslt > 0);
}

static void without_a_gpu_every_call_says_why(void **state)
{
    const library l = open_library();
    const tsr_box_copy box = {.element_bytes = 1};
    const tsr_box_fill fill = {.element_bytes = 1};
    const tsr_gemm gemm = {TSR_GEMM_OF(TSR_F32)};
    void *memory = &memory;
    (void)state;
    if (l.count > 0) {
        print_message("there are %d CUDA devices\n", l.count);
        tsr_device_driver_destroy(l.driver);
        skip();
    }
    assert_true(l.reason && strlen(l.reason) > 10);
    const tsr_status statuses[] = {l.table->alloc(l.self, 0, 1, NULL, &memory),
                                   l.table->copy(l.self, 0, &memory, &memory, 1, TSR_COPY_WITHIN, NULL),
                                   l.table->copy_boxes(l.self, 0, &box, 1, NULL),
                                   l.table->fill(l.self, 0, &fill, NULL),
                                   l.table->convert(l.self, 0, NULL, TSR_F32, NULL, TSR_F16, 0, NULL),
                                   l.table->gemm(l.self, 0, &gemm, NULL),
                                   l.table->stream_create(l.self, 0, &memory),
                                   l.table->stream_synchronize(l.self, 0, NULL),
                                   l.table->event_create(l.self, 0, &memory)};
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        assert_int_equal(statuses[i], TSR_ERROR_UNAVAILABLE);
    assert_non_null(strstr(tsr_status_message(), l.reason));
    assert_ptr_equal(memory, &memory);
    l.table->free(l.self, 0, memory, 1, NULL);
    tsr_device_driver_destroy(l.driver);
}

static void a_gpu_has_a_name_and_reaches_itself(void **state)
{
    tsr_cuda_device_info info = {.size = sizeof info};
    int reaches = 0;
    (void)state;
    const library l = open_gpus(1);
    assert_int_equal(tsr_cuda_device_describe(l.driver, 0, &info), TSR_OK);
    assert_true(info.name[0] && info.major >= 8 && info.memory_bytes > 0);
    print_message("GPU 0: %s\n", info.name);
    assert_int_equal(tsr_cuda_reaches(l.driver, 0, 0, &reaches), TSR_OK);
    assert_int_equal(reaches, 1);
    tsr_device_driver_destroy(l.driver);
}

static void work_on_streams_is_in_the_order_that_events_say(void **state)
{
    enum { COUNT = 1 << 24 };
    static uint32_t host[COUNT];
    tsr_stream first, second;
    void *event;
    (void)state;
    const library l = open_gpus(1);
    uint32_t *const a = allocate(&l, 0, sizeof host), *const b = allocate(&l, 0, sizeof host);
    tsr_box_fill fill = {.dst = a, .element_bytes = 4, .ndim = 1, .shape = {COUNT}, .dst_strides = {1}};
    const tsr_box_copy box = {
        .dst = b, .src = a, .element_bytes = 4, .ndim = 1, .shape = {COUNT}, .dst_strides = {1}, .src_strides = {1}};
    assert_int_equal(l.table->stream_create(l.self, 0, &first), TSR_OK);
    assert_int_equal(l.table->stream_create(l.self, 0, &second), TSR_OK);
    assert_int_equal(l.table->event_create(l.self, 0, &event), TSR_OK);
    for (uint32_t round = 1; round <= 20; round++) {
        memcpy(fill.value, &round, sizeof round);
        assert_int_equal(l.table->fill(l.self, 0, &fill, first), TSR_OK);
        assert_int_equal(l.table->event_record(l.self, 0, event, first), TSR_OK);
        assert_int_equal(l.table->event_wait(l.self, 0, event, second), TSR_OK);
        assert_int_equal(l.table->copy_boxes(l.self, 0, &box, 1, second), TSR_OK);
        assert_int_equal(l.table->event_record(l.self, 0, event, second), TSR_OK);
        assert_int_equal(l.table->event_wait(l.self, 0, event, first), TSR_OK);
    }
    assert_int_equal(l.table->copy(l.self, 0, host, b, sizeof host, TSR_COPY_TO_HOST, second), TSR_OK);
    assert_int_equal(l.table->stream_synchronize(l.self, 0, second), TSR_OK);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(host[i], 20);
    l.table->event_destroy(l.self, 0, event);
    l.table->stream_destroy(l.self, 0, second);
    l.table->stream_destroy(l.self, 0, first);
    l.table->free(l.self, 0, a, sizeof host, NULL);
    l.table->free(l.self, 0, b, sizeof host, NULL);
    tsr_device_driver_destroy(l.driver);
}

static void a_gpu_without_memory_stays_usable(void **state)
{
    tsr_cuda_device_info info = {.size = sizeof info};
    void *memory = NULL;
    (void)state;
    const library l = open_gpus(1);
    assert_int_equal(tsr_cuda_device_describe(l.driver, 0, &info), TSR_OK);
    assert_int_equal(l.table->alloc(l.self, 0, (size_t)info.memory_bytes * 2, NULL, &memory), TSR_ERROR_MEMORY);
    assert_non_null(strstr(tsr_status_message(), "are free"));
    assert_null(memory);
    l.table->free(l.self, 0, allocate(&l, 0, 1 << 20), 1 << 20, NULL);
    tsr_device_driver_destroy(l.driver);
}

/* Small integers, so that every product and sum is exact in every type and order; 67 rows of odd
 * lengths, at any alignment. */
static void check_product(const library *l, tsr_dtype dtype, int trans_a, int trans_b, size_t shift)
{
    enum { M = 67, N = 45, K = 33, SIDE = 80, COUNT = SIDE * SIDE };
    const size_t element = tsr_dtype_bytes(dtype), bytes = COUNT * element, at = shift * element;
    unsigned char *const a = malloc(bytes), *const b = malloc(bytes), *const c = malloc(bytes),
                         *const expected = malloc(bytes);
    unsigned char *const device = allocate(l, 0, 3 * bytes + at);
    assert_true(a && b && c && expected);
    for (size_t i = 0; i < COUNT; i++) {
        reference_store(dtype, (double)(i * 5 % 7) - 3, a + i * element);
        reference_store(dtype, (double)(i * 3 % 5) - 2, b + i * element);
        reference_store(dtype, (double)(i % 11), c + i * element);
    }
    memcpy(expected, c, bytes);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = reference_load(dtype, c + (i * SIDE + j) * element);
            for (size_t k = 0; k < K; k++)
                sum += reference_load(dtype, a + (trans_a ? k * SIDE + i : i * SIDE + k) * element) *
                       reference_load(dtype, b + (trans_b ? j * SIDE + k : k * SIDE + j) * element);
            reference_store(dtype, sum, expected + (i * SIDE + j) * element);
        }
    const tsr_gemm gemm = {TSR_GEMM_OF(dtype),
                           .trans_a = trans_a,
                           .trans_b = trans_b,
                           .m = M,
                           .n = N,
                           .k = K,
                           .alpha = 1,
                           .beta = 1,
                           .a = device + at,
                           .b = device + at + bytes,
                           .c = device + at + 2 * bytes,
                           .lda = SIDE,
                           .ldb = SIDE,
                           .ldc = SIDE};
    const void *const sources[3] = {a, b, c};
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(
            l->table->copy(l->self, 0, device + at + i * bytes, sources[i], bytes, TSR_COPY_FROM_HOST, NULL), TSR_OK);
    assert_int_equal(l->table->gemm(l->self, 0, &gemm, NULL), TSR_OK);
    assert_int_equal(l->table->copy(l->self, 0, c, gemm.c, bytes, TSR_COPY_TO_HOST, NULL), TSR_OK);
    assert_int_equal(l->table->stream_synchronize(l->self, 0, NULL), TSR_OK);
    if (memcmp(c, expected, bytes) != 0)
        fail_msg("%s, trans_a %d, trans_b %d, %zu elements off", tsr_dtype_name(dtype), trans_a, trans_b, shift);
    l->table->free(l->self, 0, device, 3 * bytes + at, NULL);
    free(a);
    free(b);
    free(c);
    free(expected);
}

static void products_are_row_major_in_every_type_and_transposition(void **state)
{
    static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16};
    (void)state;
    const library l = open_gpus(1);
    for (int d = 0; d < 4; d++)
        for (int trans = 0; trans < 4; trans++)
            for (size_t shift = 0; shift < 4; shift++)
                check_product(&l, dtypes[d], trans & 1, trans >> 1, shift);
    tsr_device_driver_destroy(l.driver);
}

static void gpus_read_each_others_memory(void **state)
{
    enum { COUNT = 1000003 };
    static unsigned char host[COUNT], back[COUNT];
    uint64_t seed = seed_of(13);
    int reaches;
    (void)state;
    const library l = open_gpus(2);
    assert_int_equal(tsr_cuda_reaches(l.driver, 1, 0, &reaches), TSR_OK);
    unsigned char *const here = allocate(&l, 0, COUNT), *const there = allocate(&l, 1, COUNT);
    const tsr_box_copy box = {.dst = there,
                              .src = here,
                              .element_bytes = 1,
                              .ndim = 1,
                              .shape = {COUNT},
                              .dst_strides = {1},
                              .src_strides = {1}};
    draw_bytes(&seed, host, sizeof host);
    assert_int_equal(l.table->copy(l.self, 0, here, host, COUNT, TSR_COPY_FROM_HOST, NULL), TSR_OK);
    assert_int_equal(l.table->stream_synchronize(l.self, 0, NULL), TSR_OK);
    if (reaches)
        assert_int_equal(l.table->copy_boxes(l.self, 1, &box, 1, NULL), TSR_OK);
    else
        assert_int_equal(l.table->copy(l.self, 1, there, here, COUNT, TSR_COPY_WITHIN, NULL), TSR_OK);
    assert_int_equal(l.table->copy(l.self, 1, back, there, COUNT, TSR_COPY_TO_HOST, NULL), TSR_OK);
    assert_int_equal(l.table->stream_synchronize(l.self, 1, NULL), TSR_OK);
    assert_memory_equal(back, host, COUNT);
    l.table->free(l.self, 0, here, COUNT, NULL);
    l.table->free(l.self, 1, there, COUNT, NULL);
    tsr_device_driver_destroy(l.driver);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_known_everywhere),
        cmocka_unit_test(without_a_gpu_every_call_says_why),
        cmocka_unit_test(a_gpu_has_a_name_and_reaches_itself),
        cmocka_unit_test(work_on_streams_is_in_the_order_that_events_say),
        cmocka_unit_test(a_gpu_without_memory_stays_usable),
        cmocka_unit_test(products_are_row_major_in_every_type_and_transposition),
        cmocka_unit_test(gpus_read_each_others_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
