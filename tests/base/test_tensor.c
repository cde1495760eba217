#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <tessera/tensor.h>

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
        cmocka_unit_test(contiguity_ignores_strides_of_single_and_of_no_elements),
        cmocka_unit_test(the_largest_tensor_is_counted_and_one_more_byte_refused),
        cmocka_unit_test(an_empty_tensor_is_empty_however_large_its_other_dims),
        cmocka_unit_test(nonsense_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
