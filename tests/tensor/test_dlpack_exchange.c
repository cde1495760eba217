/* The C exchange functions that are offered, called as a consumer of DLPack 1.3 calls them. */
#include "counted_memory.h"
#include "dl_structs.h"
#include "layouts.h"
#include "ranks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static _Alignas(16) float numbers[6] = {1, 2, 3, 4, 5, 6};

static const struct DLPackExchangeAPI *api(void)
{
    const struct DLPackExchangeAPI *const table = tsr_dlpack_exchange_api();
    assert_int_equal(table->version.major, 1);
    assert_int_equal(table->version.minor, 3);
    assert_null(table->prev_api);
    return table;
}

static void count_release(void *user)
{
    ++*(int *)user;
}

static struct DLManagedTensorVersioned *lend_numbers(int read_only, int *released)
{
    const int64_t shape[] = {2, 3};
    const tsr_tensor tensor = tsr_tensor_contiguous(numbers, TSR_F32, 2, shape);
    struct DLManagedTensorVersioned *managed = NULL;
    expect_ok(tsr_tensor_to_dlpack_versioned(NULL, &tensor, read_only, count_release, released, &managed));
    return managed;
}

static void objects_are_lent_as_often_as_wanted(void **state)
{
    (void)state;
    for (int read_only = 0; read_only < 2; read_only++) {
        struct DLManagedTensorVersioned *loans[3];
        void *object = NULL;
        dl_tensor tensor;
        tsr_dlpack_view view;
        int released = 0;
        assert_int_equal(api()->managed_tensor_to_py_object_no_sync(lend_numbers(read_only, &released), &object), 0);
        assert_int_equal(api()->dltensor_from_py_object_no_sync(object, &tensor), 0);
        assert_ptr_equal(tensor.data, numbers);
        assert_int_equal(tensor.shape[1], 3);
        assert_int_equal(tensor.strides[0], 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(api()->managed_tensor_from_py_object_no_sync(object, &loans[i]), 0);
        expect_ok(tsr_dlpack_object_view(object, NULL, &view));
        assert_int_equal(view.read_only, read_only);
        assert_int_equal(tsr_dtype_bytes(view.tensor.dtype), 4);
        assert_ptr_equal(tsr_dlpack_object_retain(object), object);
        tsr_dlpack_object_destroy(object);
        tsr_dlpack_object_destroy(object);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(released, 0);
            assert_int_equal(loans[i]->flags, read_only);
            expect_ok(tsr_tensor_from_dlpack_versioned(loans[i], NULL, &view));
            assert_ptr_equal(view.tensor.data, numbers);
            tsr_dlpack_release_versioned(loans[i]);
        }
        assert_int_equal(released, 1);
    }
    tsr_dlpack_object_destroy(NULL);
}

/* A copy is its consumer's alone, who may write to it; what many consumers are lent is not. */
static void loans_of_a_copy_are_no_copies(void **state)
{
    int released = 0;
    struct DLManagedTensorVersioned *const managed = lend_numbers(1, &released), *loan;
    tsr_dlpack_object *object;
    tsr_dlpack_view view;
    (void)state;
    managed->flags |= 2 | 4; /* IS_COPIED; another flag stays */
    expect_ok(tsr_dlpack_object_create(NULL, managed, &object));
    expect_ok(tsr_dlpack_object_view(object, NULL, &view));
    assert_int_equal(view.copied, 1);
    assert_int_equal(api()->managed_tensor_from_py_object_no_sync(object, &loan), 0);
    assert_int_equal(loan->flags, 1 | 4);
    tsr_dlpack_release_versioned(loan);
    tsr_dlpack_object_destroy(object);
    assert_int_equal(released, 1);
}

static void missing_strides_are_written_out(void **state)
{
    int64_t shape[] = {2, 3};
    struct DLManagedTensorVersioned managed = {.version = {1, 0}, .tensor = {.data = numbers, .device = {1, 0}}};
    tsr_dlpack_object *object;
    dl_tensor tensor;
    (void)state;
    managed.tensor.ndim = 2;
    managed.tensor.shape = shape;
    managed.tensor.dtype.code = 17, managed.tensor.dtype.bits = 4, managed.tensor.dtype.lanes = 2;
    expect_ok(tsr_dlpack_object_create(NULL, &managed, &object));
    assert_int_equal(api()->dltensor_from_py_object_no_sync(object, &tensor), 0);
    assert_int_equal(tensor.strides[0], 3);
    assert_int_equal(tensor.strides[1], 1);
    assert_int_equal(tensor.dtype.lanes, 2); /* dtypes that are not here pass through */
    tsr_dlpack_object_destroy(object);
}

/* The error that an allocator tells. */
typedef struct told {
    char kind[32], message[200];
    int count;
} told;

static void tell(void *user, const char *kind, const char *message)
{
    told *const t = user;
    snprintf(t->kind, sizeof t->kind, "%s", kind);
    snprintf(t->message, sizeof t->message, "%s", message);
    t->count++;
}

static void expect_told(dl_tensor *prototype, const char *kind, const char *part)
{
    struct DLManagedTensorVersioned *managed = NULL;
    told t = {.count = 0};
    assert_int_equal(api()->managed_tensor_allocator(prototype, &managed, &t, tell), -1);
    assert_int_equal(t.count, 1);
    assert_string_equal(t.kind, kind);
    assert_non_null(strstr(t.message, part));
    assert_null(managed);
}

static void tensors_are_allocated_like_a_prototype(void **state)
{
    int64_t shape[9] = {3, 5};
    dl_tensor prototype = {.device = {1, 0}, .ndim = 2, .dtype = {4, 16, 1}, .shape = shape};
    struct DLManagedTensorVersioned *managed;
    told t = {.count = 0};
    (void)state;
    for (shape[0] = 0; shape[0] < 4; shape[0] += 3) {
        assert_int_equal(api()->managed_tensor_allocator(&prototype, &managed, &t, tell), 0);
        assert_int_equal(t.count, 0);
        assert_non_null(managed->tensor.data);
        assert_int_equal(managed->tensor.dtype.code, 4);
        assert_int_equal(managed->tensor.shape[0], shape[0]);
        assert_int_equal(managed->tensor.strides[0], 5);
        memset(managed->tensor.data, 7, (size_t)shape[0] * 10);
        tsr_dlpack_release_versioned(managed);
    }
    expect_told(NULL, "ValueError", "prototype is NULL");
    shape[0] = -1;
    expect_told(&prototype, "ValueError", "negative");
    shape[0] = INT64_MAX / 16;
    expect_told(&prototype, "MemoryError", "no memory for");
    prototype.ndim = 9;
    expect_told(&prototype, "BufferError", "9 dims");
    prototype.dtype.lanes = 2;
    expect_told(&prototype, "BufferError", "2 lanes");
    prototype.device.type = 2;
    expect_told(&prototype, "BufferError", "only the host's");
}

static void streams_are_the_default_ones(void **state)
{
    (void)state;
    for (int32_t type = 1; type <= 3; type++) {
        void *stream = &stream;
        assert_int_equal(api()->current_work_stream(type, 0, &stream), 0);
        assert_null(stream);
    }
    void *stream = &stream;
    assert_int_equal(api()->current_work_stream(8, 0, &stream), -1);
    assert_non_null(strstr(tsr_status_message(), "device of type 8"));
    assert_ptr_equal(stream, &stream);
}

static void what_cannot_be_held_stays_the_callers(void **state)
{
    int64_t shape[9] = {1};
    struct DLManagedTensorVersioned managed = {.version = {2, 0}};
    tsr_dlpack_object *object = NULL;
    tsr_dlpack_view view;
    void *out = NULL;
    (void)state;
    expect_error(tsr_dlpack_object_create(NULL, &managed, &object), TSR_ERROR_UNSUPPORTED, "version 2.0");
    managed.version.major = 1;
    managed.tensor.ndim = 9;
    managed.tensor.shape = shape;
    expect_error(tsr_dlpack_object_create(NULL, &managed, &object), TSR_ERROR_UNSUPPORTED, "9 dims");
    managed.tensor.ndim = 1;
    managed.tensor.shape = NULL;
    assert_int_equal(api()->managed_tensor_to_py_object_no_sync(&managed, &out), -1);
    assert_non_null(strstr(tsr_status_message(), "shape of a tensor of 1 dims is NULL"));
    assert_null(object);
    assert_null(out);
    expect_error(tsr_dlpack_object_create(NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "managed is NULL");
    expect_error(tsr_dlpack_object_from_dtensor(NULL, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
    expect_error(tsr_dlpack_object_view(NULL, NULL, &view), TSR_ERROR_ARGUMENT, "object is NULL");
    assert_int_equal(api()->dltensor_from_py_object_no_sync(NULL, NULL), -1);
    assert_int_equal(api()->managed_tensor_from_py_object_no_sync(NULL, NULL), -1);
    assert_int_equal(api()->managed_tensor_to_py_object_no_sync(&managed, NULL), -1);
}

/* A rank's part outlives its dtensor in an object, and the object in a loan. */
static tsr_status lend_dtensor(tsr_comm *comm, void *arg)
{
    tsr_layout *layout;
    tsr_dtensor *x;
    tsr_dlpack_object *object;
    struct DLManagedTensorVersioned *managed;
    tsr_dlpack_view view;
    (void)arg;
    TSR_TRY(layout_over(comm, "2", "5x4", "S(0)", TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    TSR_TRY(tsr_dlpack_object_from_dtensor(x, &object));
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    TSR_TRY(tsr_dlpack_object_view(object, NULL, &view));
    CHECK(view.tensor.shape[0] == (tsr_comm_rank(comm) == 0 ? 3 : 2));
    CHECK(tsr_dlpack_exchange_api()->managed_tensor_from_py_object_no_sync(object, &managed) == 0);
    tsr_dlpack_object_destroy(object);
    memset(managed->tensor.data, 0, (size_t)(managed->tensor.shape[0] * 16));
    tsr_dlpack_release_versioned(managed);
    return TSR_OK;
}

static void objects_keep_dtensors(void **state)
{
    (void)state;
    run_ranks(2, lend_dtensor, NULL);
}

static tsr_status hold_numbers(void *arg)
{
    int released = 0;
    struct DLManagedTensorVersioned *const managed = lend_numbers(0, &released), *loan;
    tsr_dlpack_object *object = NULL;
    const tsr_status status = tsr_dlpack_object_create(arg, managed, &object);
    assert_int_equal(released, 0);
    if (status != TSR_OK) {
        assert_null(object);
        tsr_dlpack_release_versioned(managed);
        return status;
    }
    const int failed = api()->managed_tensor_from_py_object_no_sync(object, &loan);
    if (!failed)
        tsr_dlpack_release_versioned(loan);
    tsr_dlpack_object_destroy(object);
    assert_int_equal(released, 1);
    return failed ? TSR_ERROR_MEMORY : TSR_OK;
}

static void no_memory_leaves_nothing(void **state)
{
    counted_memory memory = {0};
    tsr_context *const context = counted_context(&memory);
    (void)state;
    assert_int_equal(fail_each_allocation(&memory, hold_numbers, context), 2);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_lent_as_often_as_wanted),
        cmocka_unit_test(loans_of_a_copy_are_no_copies),
        cmocka_unit_test(missing_strides_are_written_out),
        cmocka_unit_test(tensors_are_allocated_like_a_prototype),
        cmocka_unit_test(streams_are_the_default_ones),
        cmocka_unit_test(what_cannot_be_held_stays_the_callers),
        cmocka_unit_test(objects_keep_dtensors),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
