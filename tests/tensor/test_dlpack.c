/* Tensors to DLPack and back: the structs byte by byte, what is refused, and who frees what. */
#include "counted_memory.h"
#include "dl_structs.h"
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Code and bits of each dtype, by DLPack's table. */
static const struct {
    tsr_dtype dtype;
    uint8_t code, bits;
} dtypes[] = {
    {TSR_F64, 2, 64}, {TSR_F32, 2, 32}, {TSR_F16, 2, 16}, {TSR_BF16, 4, 16}, {TSR_F8E4M3, 10, 8}, {TSR_F8E5M2, 12, 8},
    {TSR_I64, 0, 64}, {TSR_I32, 0, 32}, {TSR_I16, 0, 16}, {TSR_I8, 0, 8},    {TSR_U64, 1, 64},    {TSR_U32, 1, 32},
    {TSR_U16, 1, 16}, {TSR_U8, 1, 8},   {TSR_BOOL, 6, 8}, {TSR_C64, 5, 64},  {TSR_C128, 5, 128},
};

static void count_release(void *user)
{
    ++*(int *)user;
}

static void dtypes_go_there_and_back(void **state)
{
    static _Alignas(16) char memory[256];
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const int64_t shape[] = {2, 3};
        tsr_tensor tensor = tsr_tensor_contiguous(memory, dtypes[i].dtype, 2, shape);
        struct DLManagedTensor *managed = NULL;
        tsr_dlpack_view view;
        int released = 0;
        test_case("%s", tsr_dtype_name(dtypes[i].dtype));
        expect_ok(tsr_tensor_to_dlpack(NULL, &tensor, count_release, &released, &managed));
        assert_int_equal(managed->tensor.dtype.code, dtypes[i].code);
        assert_int_equal(managed->tensor.dtype.bits, dtypes[i].bits);
        assert_int_equal(managed->tensor.dtype.lanes, 1);
        assert_ptr_equal(managed->tensor.data, memory);
        assert_int_equal(managed->tensor.device.type, 1);
        assert_int_equal(managed->tensor.ndim, 2);
        assert_memory_equal(managed->tensor.shape, shape, sizeof shape);
        assert_int_equal(managed->tensor.strides[0], 3);
        assert_int_equal(managed->tensor.strides[1], 1);
        expect_ok(tsr_tensor_from_dlpack(managed, NULL, &view));
        assert_memory_equal(&view.tensor, &tensor, sizeof tensor);
        assert_int_equal(view.read_only + view.copied, 0);
        tsr_dlpack_release(managed);
        assert_int_equal(released, 1);
    }
}

static void versions_and_flags_are_read(void **state)
{
    static float memory[12];
    const int64_t shape[] = {3, 4};
    (void)state;
    tsr_tensor tensor = tsr_tensor_contiguous(memory, TSR_F32, 2, shape);
    tsr_dlpack_view view;
    for (int read_only = 0; read_only < 2; read_only++) {
        struct DLManagedTensorVersioned *managed = NULL;
        expect_ok(tsr_tensor_to_dlpack_versioned(NULL, &tensor, read_only, NULL, NULL, &managed));
        assert_int_equal(managed->version.major, 1);
        assert_int_equal(managed->flags, read_only);
        managed->version.minor = 3;
        managed->flags |= 2 | 4;
        expect_ok(tsr_tensor_from_dlpack_versioned(managed, NULL, &view));
        assert_int_equal(view.read_only, read_only);
        assert_int_equal(view.copied, 1);
        managed->version.major = 2;
        expect_error(tsr_tensor_from_dlpack_versioned(managed, NULL, &view), TSR_ERROR_UNSUPPORTED, "version 2.3");
        tsr_dlpack_release_versioned(managed);
    }
    tsr_dlpack_release(NULL);
    tsr_dlpack_release_versioned(NULL);
}

/* A 2 x 3 tensor of f32, whose fields tests change. */
typedef struct given {
    int64_t shape[9], strides[9];
    dl_tensor tensor;
} given;

static _Alignas(16) float numbers[64];

static void give(given *g)
{
    *g = (given){.shape = {2, 3}, .strides = {3, 1}};
    g->tensor = (dl_tensor){.data = numbers, .device = {1, 0}, .ndim = 2, .dtype = {2, 32, 1}};
    g->tensor.shape = g->shape;
    g->tensor.strides = g->strides;
}

static void strides_and_offsets_are_kept(void **state)
{
    given g;
    tsr_tensor view;
    (void)state;
    give(&g);
    g.tensor.strides = NULL;
    g.tensor.byte_offset = 8;
    expect_ok(tsr_tensor_from_dltensor(&g.tensor, NULL, &view));
    assert_ptr_equal(view.data, numbers + 2);
    assert_int_equal(view.strides[0], 3);
    give(&g);
    g.strides[0] = 1, g.strides[1] = 2;
    expect_ok(tsr_tensor_from_dltensor(&g.tensor, NULL, &view));
    assert_int_equal(view.strides[1], 2);
    give(&g); /* strides of dims of one element are anything, as NumPy leaves them */
    g.shape[0] = 1, g.strides[0] = -77;
    expect_ok(tsr_tensor_from_dltensor(&g.tensor, NULL, &view));
    assert_true(tsr_tensor_is_contiguous(&view) && view.strides[0] >= 0);
    give(&g); /* nothing, and no memory */
    g.shape[0] = 0, g.tensor.data = NULL;
    expect_ok(tsr_tensor_from_dltensor(&g.tensor, NULL, &view));
    assert_null(view.data);
    give(&g); /* a scalar */
    g.tensor.ndim = 0, g.tensor.shape = NULL, g.tensor.strides = NULL;
    expect_ok(tsr_tensor_from_dltensor(&g.tensor, NULL, &view));
    assert_int_equal(view.ndim, 0);
    give(&g); /* pinned memory is the host's */
    g.tensor.device.type = 3;
    expect_ok(tsr_tensor_from_dltensor(&g.tensor, NULL, &view));
    assert_null(view.device.driver);
}

static void expect_refused(const given *g, tsr_status status, const char *part)
{
    tsr_tensor view = {.ndim = 77};
    expect_error(tsr_tensor_from_dltensor(&g->tensor, NULL, &view), status, part);
    assert_int_equal(view.ndim, 77);
}

static void what_is_not_here_is_refused(void **state)
{
    given g;
    (void)state;
    give(&g), g.tensor.dtype.lanes = 4;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "code 2 of 32 bits and 4 lanes");
    give(&g), g.tensor.dtype.code = 17, g.tensor.dtype.bits = 4;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "code 17 of 4 bits");
    give(&g), g.tensor.device.type = 2, g.tensor.device.id = 5;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "on device 5 of CUDA, but no driver");
    give(&g), g.tensor.device.type = 7;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "device of type 7");
    give(&g), g.tensor.ndim = 9;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "9 dims");
    give(&g), g.tensor.ndim = -1;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "-1 dims");
    give(&g), g.tensor.shape = NULL;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "shape of a tensor of 2 dims is NULL");
    give(&g), g.strides[1] = -1;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "stride 1 is -1");
    give(&g), g.shape[1] = -2;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "negative");
    give(&g), g.tensor.data = NULL;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "data of a tensor of 6 elements is NULL");
    give(&g), g.strides[0] = INT64_MAX / 4;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "with stride 0, 2305843009213693951, the tensor reaches beyond");
    give(&g), g.shape[0] = INT64_MAX, g.shape[1] = INT64_MAX;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "more than 2^63-1 bytes");
    give(&g), g.tensor.strides = NULL, g.tensor.ndim = 3, g.shape[1] = INT64_MAX / 2 + 2, g.shape[2] = 2;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "more than 2^63-1 bytes");
    give(&g), g.tensor.byte_offset = 2;
    expect_refused(&g, TSR_ERROR_UNSUPPORTED, "not aligned to 4 bytes");
    give(&g), g.tensor.byte_offset = UINT64_MAX - 3;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "at byte 18446744073709551612 of address");
    g.shape[0] = 0;
    expect_refused(&g, TSR_ERROR_ARGUMENT, "reaches beyond the last address");
    expect_error(tsr_tensor_from_dltensor(NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "dl_tensor is NULL");
    expect_error(tsr_tensor_from_dlpack(NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "managed is NULL");
    expect_error(tsr_tensor_from_dlpack_versioned(NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "managed is NULL");
    expect_error(tsr_tensor_to_dlpack(NULL, NULL, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "tensor is NULL");
    expect_error(tsr_tensor_to_dlpack_versioned(NULL, NULL, 0, NULL, NULL, NULL), TSR_ERROR_ARGUMENT, "tensor is NULL");
    expect_error(tsr_dtensor_to_dlpack(NULL, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
    expect_error(tsr_dtensor_to_dlpack_versioned(NULL, 0, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
}

static int give_tensor(void *object, dl_tensor *out)
{
    if (((given *)object)->tensor.ndim == 7)
        return -1;
    *out = ((given *)object)->tensor;
    return 0;
}

static void objects_are_read_through_the_exchange_table(void **state)
{
    const struct DLPackExchangeAPI first = {.version = {1, 3}, .dltensor_from_py_object_no_sync = give_tensor};
    const struct DLPackExchangeAPI newer = {.version = {2, 0}, .prev_api = &first};
    const struct DLPackExchangeAPI alone = {.version = {2, 0}}, empty = {.version = {1, 0}};
    given g;
    tsr_tensor view;
    (void)state;
    give(&g);
    expect_ok(tsr_tensor_from_exchange(&first, &g, NULL, &view));
    assert_ptr_equal(view.data, numbers);
    expect_ok(tsr_tensor_from_exchange(&newer, &g, NULL, &view));
    expect_error(tsr_tensor_from_exchange(&alone, &g, NULL, &view), TSR_ERROR_UNSUPPORTED, "version 2.0");
    expect_error(tsr_tensor_from_exchange(&empty, &g, NULL, &view), TSR_ERROR_UNSUPPORTED, "dltensor_from_py_object");
    g.tensor.ndim = 7;
    expect_error(tsr_tensor_from_exchange(&first, &g, NULL, &view), TSR_ERROR_ARGUMENT, "Python's exception");
    expect_error(tsr_tensor_from_exchange(NULL, &g, NULL, &view), TSR_ERROR_ARGUMENT, "exchange_api is NULL");
}

/* A dtensor's memory stays until the deleter, and then everything is freed. */
static tsr_status lend_dtensor(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x;
    struct DLManagedTensor *managed;
    struct DLManagedTensorVersioned *versioned;
    tsr_dlpack_view view;
    const int64_t shape[] = {5, 4};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_to_dlpack(x, &managed));
    TSR_TRY(tsr_dtensor_to_dlpack_versioned(x, 1, &versioned));
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    TSR_TRY(tsr_tensor_from_dlpack(managed, NULL, &view));
    CHECK(view.tensor.shape[0] == (tsr_comm_rank(comm) == 0 ? 3 : 2));
    memset(view.tensor.data, 0, (size_t)(view.tensor.shape[0] * 16));
    tsr_dlpack_release(managed);
    TSR_TRY(tsr_tensor_from_dlpack_versioned(versioned, NULL, &view));
    CHECK(view.read_only && view.tensor.shape[1] == 4);
    tsr_dlpack_release_versioned(versioned);
    return TSR_OK;
}

static void dtensors_live_until_the_deleter(void **state)
{
    (void)state;
    expect_ok(tsr_threads_run(2, lend_dtensor, NULL, NULL));
}

static tsr_status lend_tensor(void *arg)
{
    const int64_t shape[] = {4};
    const tsr_tensor tensor = tsr_tensor_contiguous(numbers, TSR_F32, 1, shape);
    struct DLManagedTensor *managed = NULL;
    const tsr_status status = tsr_tensor_to_dlpack(arg, &tensor, NULL, NULL, &managed);
    if (status == TSR_OK)
        tsr_dlpack_release(managed);
    else
        assert_null(managed);
    return status;
}

static void no_memory_leaves_nothing(void **state)
{
    counted_memory memory = {0};
    tsr_context *const context = counted_context(&memory);
    (void)state;
    assert_true(fail_each_allocation(&memory, lend_tensor, context) > 0);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_go_there_and_back),
        cmocka_unit_test(versions_and_flags_are_read),
        cmocka_unit_test(strides_and_offsets_are_kept),
        cmocka_unit_test(what_is_not_here_is_refused),
        cmocka_unit_test(objects_are_read_through_the_exchange_table),
        cmocka_unit_test(dtensors_live_until_the_deleter),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
