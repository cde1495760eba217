#include <tessera/tensor.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static tsr_tensor tensor_of(tsr_dtype dtype, int ndim, const int64_t *shape)
{
    return tsr_tensor_contiguous(NULL, dtype, ndim, shape);
}

static void a_contiguous_tensor_is_row_major_on_the_host(void **state)
{
    (void)state;
    int data;
    const int64_t shape[] = {2, 3, 4};
    const tsr_tensor tensor = tsr_tensor_contiguous(&data, TSR_F32, 3, shape);
    const int64_t strides[] = {12, 4, 1};
    assert_ptr_equal(tensor.data, &data);
    assert_int_equal(tensor.dtype, TSR_F32);
    assert_null(tensor.device.driver);
    assert_int_equal(tensor.device.index, 0);
    assert_memory_equal(tensor.shape, shape, sizeof shape);
    assert_memory_equal(tensor.strides, strides, sizeof strides);
    assert_true(tsr_tensor_is_contiguous(&tensor));
}

static void a_scalar_has_one_element_and_needs_no_shape(void **state)
{
    (void)state;
    const tsr_tensor scalar = tensor_of(TSR_F64, 0, NULL);
    int64_t count = 0;
    assert_int_equal(tsr_tensor_count(&scalar, &count), TSR_OK);
    assert_int_equal(count, 1);
    assert_true(tsr_tensor_is_contiguous(&scalar));
}

static void contiguity_ignores_strides_of_single_and_of_no_elements(void **state)
{
    (void)state;
    const int64_t shape[] = {2, 1, 3};
    tsr_tensor tensor = tensor_of(TSR_F32, 3, shape);
    tensor.strides[1] = 77;
    assert_true(tsr_tensor_is_contiguous(&tensor));
    tensor.strides[0] = 4;
    assert_false(tsr_tensor_is_contiguous(&tensor));
    tensor.shape[2] = 0;
    assert_true(tsr_tensor_is_contiguous(&tensor));
    tensor.shape[2] = 3;
    tensor.strides[0] = 3;
    tensor.strides[2] = -1;
    assert_false(tsr_tensor_is_contiguous(&tensor));
}

static bool advance(const tsr_tensor *tensor, int64_t *index)
{
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        if (++index[d] < tensor->shape[d])
            return true;
        index[d] = 0;
    }
    return false;
}

/* Marks the place of every element; true if two elements have one place. */
static bool overlaps_by_marks(const tsr_tensor *tensor)
{
    bool marked[4096] = {false};
    int64_t index[TSR_MAX_DIMS] = {0};
    do {
        int64_t place = 0;
        for (int d = 0; d < tensor->ndim; d++)
            place += index[d] * tensor->strides[d];
        assert_true(place < 4096);
        if (marked[place])
            return true;
        marked[place] = true;
    } while (advance(tensor, index));
    return false;
}

static uint64_t drawn;

static int64_t draw(int64_t least, int64_t most)
{
    drawn = drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return least + (int64_t)((drawn >> 33) % (uint64_t)(most - least + 1));
}

/* About half of the tensors drawn overlap: some have few elements far apart, some many close
 * together. */
static void strides_are_known_to_overlap_exactly_where_marks_do(void **state)
{
    (void)state;
    int found[2] = {0, 0};
    for (int trial = 0; trial < 60000; trial++) {
        tsr_tensor tensor = {.dtype = TSR_F32, .ndim = (int)draw(1, 5)};
        const int64_t widest = draw(2, tensor.ndim < 4 ? 9 : 4), farthest = draw(1, 100);
        for (int d = 0; d < tensor.ndim; d++) {
            tensor.shape[d] = draw(1, widest);
            tensor.strides[d] = draw(0, farthest);
        }
        const bool overlaps = overlaps_by_marks(&tensor);
        found[overlaps]++;
        if (tsr_tensor_overlaps(&tensor) != overlaps)
            fail_msg("shape %lld,%lld,%lld,%lld,%lld strides %lld,%lld,%lld,%lld,%lld of %d dims: marks say %d",
                     (long long)tensor.shape[0], (long long)tensor.shape[1], (long long)tensor.shape[2],
                     (long long)tensor.shape[3], (long long)tensor.shape[4], (long long)tensor.strides[0],
                     (long long)tensor.strides[1], (long long)tensor.strides[2], (long long)tensor.strides[3],
                     (long long)tensor.strides[4], tensor.ndim, overlaps);
    }
    assert_true(found[0] > 5000 && found[1] > 5000);
}

typedef struct strided {
    int ndim;
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS];
    int overlaps;
} strided;

static void overlaps_are_known_of_tensors_of_any_size(void **state)
{
    (void)state;
    static const int64_t far = INT64_C(1) << 40;
    const strided cases[] = {
        {0, {0}, {0}, 0},
        {2, {4, 4}, {2, 1}, 1},                                      /* (0,2) is (1,0) */
        {2, {3, 2}, {2, 3}, 0},                                      /* interleaved: 0, 3, 2, 5, 4, 7 */
        {2, {4, 4}, {4, 1}, 0},                                      /* row-major */
        {2, {4, 4}, {1, 4}, 0},                                      /* column-major */
        {2, {4, 0}, {0, 0}, 0},                                      /* nothing */
        {2, {1, 1}, {0, 0}, 0},                                      /* one element */
        {2, {4, 1}, {0, 1}, 1},                                      /* broadcast */
        {3, {1 << 20, 1 << 20, 1 << 20}, {far, 1 << 20, 1}, 0},      /* 2^60 elements */
        {3, {1 << 20, 1 << 20, 1 << 20}, {far - 1, 1 << 20, 1}, 1},  /* one too few between */
        {3, {1 << 20, 1 << 20, 1 << 20}, {1, far, 1 << 20}, 0},      /* the same with dims exchanged */
        {2, {1000003, 999983}, {999983, 1000003}, 0},                /* primes: no two elements meet */
        {2, {1000004, 999984}, {999983, 1000003}, 1},                /* one element more: two meet */
        {3, {1000, 1000, 1000}, {100000007, 99999989, 99999971}, 1}, /* twice the middle stride is the others' sum */
        {3, {1000, 1000, 1000}, {1100000000, 1000003, 1000}, 0},     /* nested */
        {8, {2, 2, 2, 2, 2, 2, 2, 2}, {128, 64, 32, 16, 8, 4, 2, 1}, 0},
        {8, {2, 2, 2, 2, 2, 2, 2, 2}, {127, 64, 32, 16, 8, 4, 2, 1}, 1},
        {8, {2, 2, 2, 2, 2, 2, 2, 2}, {84, 83, 81, 77, 68, 52, 31, 100}, 1},
        {7, {2, 2, 2, 2, 2, 2, 2}, {44, 43, 41, 37, 30, 18, 40}, 1},
        {7, {2, 2, 2, 2, 2, 2, 2}, {20, 31, 37, 40, 42, 43, 44}, 0}, /* all sums differ, by the Conway-Guy sequence */
        {2, {4, 4}, {-4, 1}, 0},                                     /* upside down */
        {2, {4, 4}, {-2, 1}, 1},                                     /* (1,2) is (0,0) */
        {2, {3, 3}, {INT64_MAX, 1}, 1},                              /* refused */
        {2, {2, 2}, {INT64_MIN, 1}, 1},                              /* refused */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_tensor tensor = {.dtype = TSR_F32, .ndim = cases[i].ndim};
        memcpy(tensor.shape, cases[i].shape, sizeof tensor.shape);
        memcpy(tensor.strides, cases[i].strides, sizeof tensor.strides);
        if (tsr_tensor_overlaps(&tensor) != cases[i].overlaps)
            fail_msg("case %zu: not %d", i, cases[i].overlaps);
    }
}

static void the_largest_tensor_is_counted_and_one_more_byte_refused(void **state)
{
    (void)state;
    int64_t count = 0;
    const int64_t largest[] = {INT64_MAX};
    tsr_tensor tensor = tensor_of(TSR_U8, 1, largest);
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_OK);
    assert_int_equal(count, INT64_MAX);
    tensor.dtype = TSR_F16;
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_ERROR_ARGUMENT);
    const int64_t half[] = {INT64_C(1) << 31, INT64_C(1) << 29};
    tensor = tensor_of(TSR_F32, 2, half);
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_OK);
    assert_int_equal(count, INT64_C(1) << 60);
    tensor.dtype = TSR_F64;
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_ERROR_ARGUMENT);
    assert_int_equal(count, INT64_C(1) << 60);
    assert_non_null(strstr(tsr_status_message(), "shape[1]"));
}

static void an_empty_tensor_is_empty_however_large_its_other_dims(void **state)
{
    (void)state;
    int64_t count = 7;
    const int64_t shape[] = {INT64_MAX, INT64_MAX, 0};
    const tsr_tensor tensor = tensor_of(TSR_C128, 3, shape);
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_OK);
    assert_int_equal(count, 0);
}

static void nonsense_is_refused_by_name(void **state)
{
    (void)state;
    int64_t count = 7;
    const int64_t shape[] = {2, -3};
    tsr_tensor tensor = tensor_of(TSR_F32, 2, shape);
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "shape[1] is -3"));
    tensor.ndim = -1;
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "ndim is -1"));
    tensor.ndim = 9;
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "ndim is 9"));
    tensor = (tsr_tensor){0};
    assert_int_equal(tsr_tensor_count(&tensor, &count), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_tensor_count(NULL, &count), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_tensor_count(&tensor, NULL), TSR_ERROR_ARGUMENT);
    assert_int_equal(count, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_contiguous_tensor_is_row_major_on_the_host),
        cmocka_unit_test(a_scalar_has_one_element_and_needs_no_shape),
        cmocka_unit_test(strides_are_known_to_overlap_exactly_where_marks_do),
        cmocka_unit_test(overlaps_are_known_of_tensors_of_any_size),
        cmocka_unit_test(contiguity_ignores_strides_of_single_and_of_no_elements),
        cmocka_unit_test(the_largest_tensor_is_counted_and_one_more_byte_refused),
        cmocka_unit_test(an_empty_tensor_is_empty_however_large_its_other_dims),
        cmocka_unit_test(nonsense_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
