/* Drivers: what a table must have, and what the host's own tables are. */
#include "variants.h"

#define REQUIRED(X)                                                                                                    \
    X(name)                                                                                                            \
    X(count)                                                                                                           \
    X(alloc) X(free) X(copy) X(copy_boxes) X(fill) X(reduce) X(convert)

static tsr_device_table complete(void)
{
    return *tsr_device_driver_table(NULL, NULL);
}

static void refuse(const tsr_device_table *table, const char *entry)
{
    tsr_device_driver *driver = (void *)&driver;
    assert_int_equal(tsr_device_driver_create(table, NULL, &driver), TSR_ERROR_ARGUMENT);
    assert_ptr_equal(driver, &driver);
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", entry);
    if (!strstr(tsr_status_message(), quoted))
        fail_msg("the sentence does not name %s: %s", quoted, tsr_status_message());
}

static void a_table_without_a_required_entry_is_refused_by_its_name(void **state)
{
    (void)state;
#define WITHOUT(entry)                                                                                                 \
    {                                                                                                                  \
        tsr_device_table table = complete();                                                                           \
        table.entry = NULL;                                                                                            \
        refuse(&table, #entry);                                                                                        \
    }
    REQUIRED(WITHOUT)
#undef WITHOUT
}

static tsr_status synchronize(void *self, int index, tsr_stream stream)
{
    (void)self, (void)index, (void)stream;
    return TSR_OK;
}

static void a_table_with_some_stream_entries_needs_them_all(void **state)
{
    tsr_device_table table = complete();
    (void)state;
    table.stream_synchronize = synchronize;
    refuse(&table, "stream_create");
}

static void a_table_without_optional_entries_is_taken(void **state)
{
    const tsr_device_table table = complete();
    tsr_device_driver *driver;
    void *self;
    (void)state;
    assert_null(table.gemm);
    assert_int_equal(tsr_device_driver_create(&table, &self, &driver), TSR_OK);
    assert_memory_equal(tsr_device_driver_table(driver, &self), &table, sizeof table);
    assert_ptr_equal(self, &self);
    tsr_device_driver_destroy(driver);
    tsr_device_driver_destroy(NULL);
}

static void count_down(void *self)
{
    --*(int *)self;
}

static void a_table_that_can_frees_its_self_with_the_driver(void **state)
{
    tsr_device_table table = complete();
    tsr_device_driver *driver;
    int alive = 1;
    (void)state;
    table.destroy = count_down;
    table.name = NULL;
    assert_int_equal(tsr_device_driver_create(&table, &alive, &driver), TSR_ERROR_ARGUMENT);
    assert_int_equal(alive, 1);
    table.name = "counted";
    assert_int_equal(tsr_device_driver_create(&table, &alive, &driver), TSR_OK);
    assert_int_equal(alive, 1);
    tsr_device_driver_destroy(driver);
    assert_int_equal(alive, 0);
}

static void a_table_of_an_older_header_is_refused(void **state)
{
    tsr_device_table table = complete();
    tsr_device_driver *driver;
    (void)state;
    table.size--;
    assert_int_equal(tsr_device_driver_create(&table, NULL, &driver), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "size"));
    table.size += 9;
    assert_int_equal(tsr_device_driver_create(&table, NULL, &driver), TSR_OK);
    tsr_device_driver_destroy(driver);
}

static void null_arguments_are_refused(void **state)
{
    const tsr_device_table table = complete();
    const tsr_device_table *found;
    tsr_device_driver *driver;
    (void)state;
    assert_int_equal(tsr_device_driver_create(NULL, NULL, &driver), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_device_driver_create(&table, NULL, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_device_host_table(NULL, &found), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_device_host_table("portable", NULL), TSR_ERROR_ARGUMENT);
}

static void unknown_kernels_are_refused_with_the_known_ones(void **state)
{
    const tsr_device_table *table = (void *)&table;
    (void)state;
    assert_int_equal(tsr_device_host_table("sse9", &table), TSR_ERROR_ARGUMENT);
    assert_ptr_equal(table, &table);
    assert_non_null(strstr(tsr_status_message(), "sse9"));
    assert_non_null(strstr(tsr_status_message(), "portable, avx2 and avx512"));
}

static void portable_kernels_run_everywhere(void **state)
{
    const tsr_device_table *table;
    (void)state;
    assert_int_equal(tsr_device_host_table("portable", &table), TSR_OK);
    assert_string_equal(table->name, "host");
}

static void there_is_one_host_and_its_memory_is_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 4096, (size_t)5 << 20};
    variant all[3];
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--) {
        const char *reason = "";
        int count = 0;
        assert_int_equal(all[v].table->count(NULL, &count, &reason), TSR_OK);
        assert_int_equal(count, 1);
        assert_null(reason);
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            void *memory;
            assert_int_equal(all[v].table->alloc(NULL, 0, sizes[i], NULL, &memory), TSR_OK);
            assert_int_equal((uintptr_t)memory % 64, 0);
            memset(memory, 1, sizes[i]);
            all[v].table->free(NULL, 0, memory, sizes[i], NULL);
        }
    }
}

static void memory_that_there_is_not_is_an_error(void **state)
{
    void *memory = &memory;
    (void)state;
    assert_int_equal(tsr_device_driver_table(NULL, NULL)->alloc(NULL, 0, SIZE_MAX / 2, NULL, &memory),
                     TSR_ERROR_MEMORY);
    assert_ptr_equal(memory, &memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_without_a_required_entry_is_refused_by_its_name),
        cmocka_unit_test(a_table_with_some_stream_entries_needs_them_all),
        cmocka_unit_test(a_table_without_optional_entries_is_taken),
        cmocka_unit_test(a_table_that_can_frees_its_self_with_the_driver),
        cmocka_unit_test(a_table_of_an_older_header_is_refused),
        cmocka_unit_test(null_arguments_are_refused),
        cmocka_unit_test(unknown_kernels_are_refused_with_the_known_ones),
        cmocka_unit_test(portable_kernels_run_everywhere),
        cmocka_unit_test(there_is_one_host_and_its_memory_is_aligned),
        cmocka_unit_test(memory_that_there_is_not_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
