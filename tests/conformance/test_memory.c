/* Memory of a device, and copies between it and the host. */
#include "devices.h"
#include "variants.h"

static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 4097, ((size_t)1 << 20) + 5};

enum { SIZES = sizeof sizes / sizeof sizes[0], MOST_BYTES = (1 << 20) + 5 };

typedef struct device {
    const tsr_device_table *table;
    void *self;
} device;

static device under_test(void)
{
    device d;
    d.table = devices_table(&d.self);
    return d;
}

static void *take(const device *d, size_t bytes)
{
    void *memory = NULL;
    if (d->table->alloc(d->self, 0, bytes, NULL, &memory) != TSR_OK)
        fail_msg("%zu bytes: %s", bytes, tsr_status_message());
    return memory;
}

/* A copy on the default stream, which is done on return. */
static void move(const device *d, void *dst, const void *src, size_t bytes, tsr_copy_kind kind)
{
    assert_int_equal(d->table->copy(d->self, 0, dst, src, bytes, kind, NULL), TSR_OK);
    if (d->table->stream_synchronize)
        assert_int_equal(d->table->stream_synchronize(d->self, 0, NULL), TSR_OK);
}

static void devices_are_counted(void **state)
{
    const device d = under_test();
    const char *reason = "";
    int count = 0;
    (void)state;
    assert_int_equal(d.table->count(d.self, &count, &reason), TSR_OK);
    assert_true(count > 0);
}

static void memory_is_aligned(void **state)
{
    const device d = under_test();
    (void)state;
    for (int i = 0; i < SIZES; i++) {
        void *const memory = take(&d, sizes[i]);
        if ((uintptr_t)memory % 64 != 0)
            fail_msg("memory of %zu bytes is at %p, which is not aligned to 64", sizes[i], memory);
        d.table->free(d.self, 0, memory, sizes[i], NULL);
    }
}

static void pieces_of_memory_do_not_overlap(void **state)
{
    const device d = under_test();
    void *memory[SIZES];
    unsigned char *const host = malloc(MOST_BYTES);
    (void)state;
    assert_non_null(host);
    for (int i = 0; i < SIZES; i++)
        memory[i] = take(&d, sizes[i]);
    for (int i = 0; i < SIZES; i++) {
        memset(host, 17 * i + 1, sizes[i]);
        move(&d, memory[i], host, sizes[i], TSR_COPY_FROM_HOST);
    }
    for (int i = 0; i < SIZES; i++) {
        memset(host, 0, sizes[i]);
        move(&d, host, memory[i], sizes[i], TSR_COPY_TO_HOST);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(host[k], 17 * i + 1);
        d.table->free(d.self, 0, memory[i], sizes[i], NULL);
    }
    free(host);
}

static void every_byte_is_copied_from_the_host_and_back(void **state)
{
    const device d = under_test();
    unsigned char *const from = malloc(MOST_BYTES), *const to = malloc(MOST_BYTES + 1);
    uint64_t seed = seed_of(7);
    (void)state;
    assert_true(from && to);
    draw_bytes(&seed, from, MOST_BYTES);
    for (int i = 0; i < SIZES; i++) {
        char *const memory = take(&d, sizes[i] + 3), *const other = take(&d, sizes[i] + 3);
        memset(to, 0xa5, MOST_BYTES + 1);
        move(&d, memory + 3, from, sizes[i], TSR_COPY_FROM_HOST);
        move(&d, other + 1, memory + 3, sizes[i], TSR_COPY_WITHIN);
        move(&d, to, other + 1, sizes[i], TSR_COPY_TO_HOST);
        if (memcmp(to, from, sizes[i]) != 0 || to[sizes[i]] != 0xa5)
            fail_msg("a copy of %zu bytes has not brought just these", sizes[i]);
        d.table->free(d.self, 0, memory, sizes[i] + 3, NULL);
        d.table->free(d.self, 0, other, sizes[i] + 3, NULL);
    }
    free(from);
    free(to);
}

static void memory_that_there_is_not_is_an_error(void **state)
{
    const device d = under_test();
    void *memory = &memory;
    (void)state;
    assert_int_equal(d.table->alloc(d.self, 0, SIZE_MAX / 2, NULL, &memory), TSR_ERROR_MEMORY);
    assert_ptr_equal(memory, &memory);
}

int devices_memory(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_are_counted),
        cmocka_unit_test(memory_is_aligned),
        cmocka_unit_test(pieces_of_memory_do_not_overlap),
        cmocka_unit_test(every_byte_is_copied_from_the_host_and_back),
        cmocka_unit_test(memory_that_there_is_not_is_an_error),
    };
    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
