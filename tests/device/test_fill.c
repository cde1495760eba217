/* Fills, compared with a loop over elements, gaps included. */
#include "device_parts.h"
#include "variants.h"

static void fill_naively(const tsr_box_fill *fill)
{
    const int64_t count = count_of(fill->ndim, fill->shape);
    for (int64_t i = 0; i < count; i++)
        memcpy((char *)fill->dst +
                   offset_of(fill->ndim, fill->shape, fill->dst_strides, i) * (int64_t)fill->element_bytes,
               fill->value, fill->element_bytes);
}

static void check_fill(uint64_t seed, tsr_box_fill *fill, arrangement how)
{
    uint64_t state = seed;
    int64_t first;
    variant all[3];
    const int count = list_variants(all);
    const int64_t span = arrange(&state, how, fill->ndim, fill->shape, fill->dst_strides, &first);
    const size_t shift = (size_t)draw_between(&state, 0, 70), bytes = shift + (size_t)span * fill->element_bytes + 70;
    unsigned char *const expected = malloc(bytes), *const dst = malloc(bytes);
    assert_true(expected && dst);
    draw_bytes(&state, fill->value, sizeof fill->value);
    memset(expected, 0xa5, bytes);
    fill->dst = expected + shift + (size_t)first * fill->element_bytes;
    fill_naively(fill);
    fill->dst = dst + shift + (size_t)first * fill->element_bytes;
    for (int v = 0; v < count; v++) {
        memset(dst, 0xa5, bytes);
        assert_int_equal(all[v].table->fill(NULL, 0, fill, NULL), TSR_OK);
        if (memcmp(dst, expected, bytes) != 0)
            fail_msg("%s: %d dims of %zu bytes differ; TSR_TEST_SEED=%llu", all[v].name, fill->ndim,
                     fill->element_bytes, (unsigned long long)seed);
    }
    free(expected);
    free(dst);
}

static void random_boxes_are_filled_byte_for_byte(void **state)
{
    uint64_t seed = seed_of(2);
    (void)state;
    for (int i = 0; i < 3000; i += step_of(4)) {
        const uint64_t begin = seed;
        tsr_box_fill fill = {.element_bytes = (size_t)1 << draw_between(&seed, 0, 4),
                             .ndim = (int)draw_between(&seed, 0, TSR_MAX_DIMS)};
        for (int d = 0; d < fill.ndim; d++)
            fill.shape[d] = draw(&seed) % 40 == 0 ? 0
                                                  : draw_between(&seed, 1,
                                                                 fill.ndim <= 2   ? 90
                                                                 : fill.ndim <= 4 ? 9
                                                                                  : 3);
        check_fill(begin, &fill, (arrangement)draw_between(&seed, ARRANGED_IN_ORDER, ARRANGED_ANYHOW));
    }
}

static void large_boxes_are_filled_past_the_cache(void **state)
{
    (void)state;
    for (size_t element = 1; element <= 16; element *= 2) {
        tsr_box_fill fill = {.element_bytes = element, .ndim = 2, .shape = {1031, (int64_t)(16384 / element) + 3}};
        check_fill(element, &fill, ARRANGED_IN_ORDER);
        check_fill(element, &fill, ARRANGED_WITH_GAPS);
    }
}

static void fills_that_are_none_are_refused(void **state)
{
    variant all[3];
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--) {
        tsr_box_fill fill = {.element_bytes = 4, .ndim = 1, .shape = {0}};
        assert_int_equal(all[v].table->fill(NULL, 0, &fill, NULL), TSR_OK);
        fill.ndim = 9;
        assert_int_equal(all[v].table->fill(NULL, 0, &fill, NULL), TSR_ERROR_ARGUMENT);
        fill.ndim = 0;
        fill.element_bytes = 5;
        assert_int_equal(all[v].table->fill(NULL, 0, &fill, NULL), TSR_ERROR_ARGUMENT);
    }
}

int device_fill(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_boxes_are_filled_byte_for_byte),
        cmocka_unit_test(large_boxes_are_filled_past_the_cache),
        cmocka_unit_test(fills_that_are_none_are_refused),
    };
    return cmocka_run_group_tests_name("fill", tests, NULL, NULL);
}
