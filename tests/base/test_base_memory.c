#include "base/checked.h"
#include "base/memory/memory.h"
#include "counted_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const size_t sizes[] = {0,
                               1,
                               63,
                               64,
                               65,
                               4096,
                               ((size_t)64 << 10) - 64,
                               ((size_t)64 << 10) - 63,
                               ((size_t)4 << 20) - 64,
                               (size_t)4 << 20,
                               ((size_t)6 << 20) + 17};

static void walk_sizes(tsr_context *context)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *memory = NULL;
        assert_int_equal(tsr_allocate(context, sizes[i], &memory), TSR_OK);
        assert_int_equal((uintptr_t)memory % 64, 0);
        memset(memory, 0xa5, sizes[i]);
        tsr_release(context, memory);
        assert_int_equal(tsr_allocate_zeroed(context, sizes[i], &memory), TSR_OK);
        const unsigned char *bytes = memory;
        for (size_t at = 0; at < sizes[i]; at++)
            assert_int_equal(bytes[at], 0);
        tsr_release(context, memory);
    }
}

static void blocks_of_any_size_are_aligned_and_writable(void **state)
{
    (void)state;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.environment = no_environment;
    tsr_context *context = NULL;
    assert_int_equal(tsr_context_create(&options, &context), TSR_OK);
    walk_sizes(context);
    tsr_release(context, NULL);
    tsr_context_destroy(context);
}

static void a_given_allocator_gets_back_the_sizes_it_gave(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    walk_sizes(context);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void an_impossible_size_is_refused_before_the_allocator_is_asked(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    const size_t before = memory.allocations;
    void *out = &memory;
    size_t capacity = 0;
    void *array = NULL;
    assert_int_equal(tsr_allocate(context, SIZE_MAX, &out), TSR_ERROR_MEMORY);
    assert_int_equal(tsr_allocate(context, PTRDIFF_MAX, &out), TSR_ERROR_MEMORY);
    assert_int_equal(tsr_allocate_zeroed(context, SIZE_MAX - 63, &out), TSR_ERROR_MEMORY);
    assert_int_equal(tsr_allocate_array(context, SIZE_MAX / 2 + 1, 2, &out), TSR_ERROR_MEMORY);
    assert_int_equal(tsr_reserve(context, &array, &capacity, SIZE_MAX / 2, 16), TSR_ERROR_MEMORY);
    assert_ptr_equal(out, &memory);
    assert_null(array);
    assert_int_equal(capacity, 0);
    assert_int_equal(memory.allocations, before);
    tsr_context_destroy(context);
}

static void an_array_keeps_what_it_holds_while_it_grows(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    void *array = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(tsr_reserve(context, &array, &capacity, i + 1, sizeof i), TSR_OK);
        assert_true(capacity > i);
        ((size_t *)array)[i] = i;
    }
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(((size_t *)array)[i], i);
    assert_true(memory.allocations < 16);
    tsr_release(context, array);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void an_array_of_elements_starts_as_zeros(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    static const int64_t zeros[33];
    void *array = NULL;
    assert_int_equal(tsr_allocate_array(context, 33, sizeof(int64_t), &array), TSR_OK);
    assert_memory_equal(array, zeros, sizeof zeros);
    tsr_release(context, array);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void a_failed_growth_leaves_the_array_as_it_was(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    void *array = NULL;
    size_t capacity = 0;
    assert_int_equal(tsr_reserve(context, &array, &capacity, 4, 8), TSR_OK);
    void *const before = array;
    memory.fail_at = memory.allocations + 1;
    assert_int_equal(tsr_reserve(context, &array, &capacity, 5, 8), TSR_ERROR_MEMORY);
    assert_ptr_equal(array, before);
    assert_int_equal(capacity, 4);
    tsr_release(context, array);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void checked_arithmetic_says_when_it_overflows(void **state)
{
    (void)state;
    int64_t out = 7;
    assert_true(tsr_multiply(INT64_C(1) << 31, INT64_C(1) << 31, &out));
    assert_int_equal(out, INT64_C(1) << 62);
    assert_true(tsr_add_sizes(INT64_MAX - 1, 1, &out));
    assert_int_equal(out, INT64_MAX);
    out = 7;
    assert_false(tsr_multiply(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_false(tsr_multiply(-1, 1, &out));
    assert_false(tsr_multiply(1, -1, &out));
    assert_false(tsr_add_sizes(INT64_MAX, 1, &out));
    assert_false(tsr_add_sizes(-1, 1, &out));
    assert_int_equal(out, 7);
    assert_int_equal(tsr_ceil_div(INT64_MAX, 1), INT64_MAX);
    assert_int_equal(tsr_ceil_div(INT64_MAX, INT64_MAX), 1);
    assert_int_equal(tsr_ceil_div(9, 4), 3);
    assert_int_equal(tsr_ceil_div(0, 4), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_any_size_are_aligned_and_writable),
        cmocka_unit_test(a_given_allocator_gets_back_the_sizes_it_gave),
        cmocka_unit_test(an_impossible_size_is_refused_before_the_allocator_is_asked),
        cmocka_unit_test(an_array_keeps_what_it_holds_while_it_grows),
        cmocka_unit_test(an_array_of_elements_starts_as_zeros),
        cmocka_unit_test(a_failed_growth_leaves_the_array_as_it_was),
        cmocka_unit_test(checked_arithmetic_says_when_it_overflows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
