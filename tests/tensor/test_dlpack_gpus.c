/* Memory of GPUs by DLPack: lent, borrowed, moved by ranks, and freed by the last holder. */
#include "dl_structs.h"
#include "gpus.h"
#include "ranks.h"
#include "rows_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { RANKS = 2, ROWS = 5, COLUMNS = 4, COUNT = ROWS * COLUMNS };

static gpus machine;

static void on_gpus(tsr_rank_main *body)
{
    gpus_open(&machine);
    if (!machine.driver)
        return;
    run_ranks(RANKS, body, NULL);
    tsr_device_driver_destroy(machine.driver);
}

static tsr_device device_of(const tsr_comm *comm)
{
    return (tsr_device){machine.driver, tsr_comm_rank(comm) % machine.count};
}

static rows_memory memory_of(const tsr_tensor *tensor)
{
    return (rows_memory){.device = tensor->device, .data = tensor->data};
}

/* A dtensor on this rank's GPU, whose element with global number g is g. */
static tsr_status make_numbers(tsr_comm *comm, tsr_layout **layout, tsr_dtensor **out)
{
    float numbers[COUNT];
    int64_t offset[2], local_shape[2];
    TSR_TRY(layout_over(comm, "2", "5x4", "S(0)", TSR_F32, layout));
    TSR_TRY(tsr_dtensor_create(*layout, device_of(comm), out));
    TSR_TRY(tsr_layout_local(*layout, NULL, local_shape, offset));
    const int64_t count = local_shape[0] * COLUMNS;
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)(offset[0] * COLUMNS + i);
    const tsr_tensor local = tsr_dtensor_to_local(*out);
    const rows_memory memory = memory_of(&local);
    return rows_memory_put(&memory, numbers, (size_t)count * sizeof *numbers);
}

/* Every rank must see all elements of a tensor that it borrows of DLPack. */
static tsr_status gather_borrowed(const tsr_tensor *borrowed, const tsr_layout *layout)
{
    float numbers[COUNT] = {0};
    tsr_dtensor *x, *y;
    TSR_TRY(tsr_dtensor_from_local(borrowed, layout, NULL, &x));
    TSR_TRY(tsr_redistribute_to(x, "R", &y));
    const tsr_tensor local = tsr_dtensor_to_local(y);
    CHECK(local.device.driver == machine.driver && local.device.index == borrowed->device.index);
    const rows_memory memory = memory_of(&local);
    TSR_TRY(rows_memory_get(&memory, numbers, sizeof numbers));
    for (int i = 0; i < COUNT; i++)
        CHECK(numbers[i] == (float)i);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status check_struct(const dl_tensor *tensor, const tsr_tensor *local)
{
    CHECK(tensor->device.type == 2 && tensor->device.id == local->device.index);
    CHECK(tensor->data == local->data && tensor->byte_offset == 0);
    CHECK(tensor->ndim == 2 && tensor->shape[0] == local->shape[0] && tensor->shape[1] == COLUMNS);
    CHECK(tensor->strides[0] == COLUMNS && tensor->strides[1] == 1);
    return TSR_OK;
}

/* The dtensor is destroyed while its memory is lent twice. */
static tsr_status lend_and_borrow(tsr_comm *comm, void *arg)
{
    tsr_layout *layout;
    tsr_dtensor *x;
    struct DLManagedTensor *managed;
    struct DLManagedTensorVersioned *versioned;
    tsr_dlpack_view view;
    (void)arg;
    TSR_TRY(make_numbers(comm, &layout, &x));
    const tsr_tensor local = tsr_dtensor_to_local(x);
    TSR_TRY(tsr_dtensor_to_dlpack(x, &managed));
    TSR_TRY(tsr_dtensor_to_dlpack_versioned(x, 0, &versioned));
    tsr_dtensor_destroy(x);
    TSR_TRY(check_struct(&managed->tensor, &local));
    TSR_TRY(check_struct(&versioned->tensor, &local));
    CHECK_ERROR(tsr_tensor_from_dlpack(managed, NULL, &view), TSR_ERROR_UNSUPPORTED, "but no driver is given");
    TSR_TRY(tsr_tensor_from_dlpack(managed, machine.driver, &view));
    CHECK(memcmp(&view.tensor, &local, sizeof local) == 0);
    tsr_dlpack_release(managed);
    TSR_TRY(tsr_tensor_from_dlpack_versioned(versioned, machine.driver, &view));
    CHECK(memcmp(&view.tensor, &local, sizeof local) == 0);
    TSR_TRY(gather_borrowed(&view.tensor, layout));
    tsr_dlpack_release_versioned(versioned);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void memory_of_gpus_is_lent_and_borrowed(void **state)
{
    (void)state;
    on_gpus(lend_and_borrow);
}

/* What one rank writes into borrowed memory, the lender sees. */
static tsr_status write_borrowed(tsr_comm *comm, void *arg)
{
    const float written[COLUMNS] = {70, 71, 72, 73};
    float seen[2 * COLUMNS];
    tsr_layout *layout;
    tsr_dtensor *x;
    struct DLManagedTensorVersioned *managed;
    tsr_dlpack_view view;
    (void)arg;
    TSR_TRY(make_numbers(comm, &layout, &x));
    TSR_TRY(tsr_dtensor_to_dlpack_versioned(x, 0, &managed));
    managed->tensor.byte_offset = sizeof written; /* the second row */
    managed->tensor.shape[0] = 1;
    TSR_TRY(tsr_tensor_from_dlpack_versioned(managed, machine.driver, &view));
    const tsr_tensor local = tsr_dtensor_to_local(x);
    CHECK((char *)view.tensor.data == (char *)local.data + sizeof written);
    const rows_memory row = memory_of(&view.tensor), memory = memory_of(&local);
    TSR_TRY(rows_memory_put(&row, written, sizeof written));
    TSR_TRY(rows_memory_get(&memory, seen, sizeof seen));
    CHECK(memcmp(seen + COLUMNS, written, sizeof written) == 0);
    tsr_dlpack_release_versioned(managed);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void what_is_written_to_borrowed_memory_is_seen(void **state)
{
    (void)state;
    on_gpus(write_borrowed);
}

/* An object keeps a GPU's memory, and lends it through the table of the C exchange functions. */
static tsr_status hold_and_lend(tsr_comm *comm, void *arg)
{
    const struct DLPackExchangeAPI *const api = tsr_dlpack_exchange_api();
    tsr_layout *layout;
    tsr_dtensor *x;
    tsr_dlpack_object *object;
    struct DLManagedTensorVersioned *managed;
    tsr_dlpack_view view;
    void *stream = &stream;
    (void)arg;
    TSR_TRY(make_numbers(comm, &layout, &x));
    const tsr_tensor local = tsr_dtensor_to_local(x);
    TSR_TRY(tsr_dlpack_object_from_dtensor(x, &object));
    tsr_dtensor_destroy(x);
    CHECK_ERROR(tsr_dlpack_object_view(object, NULL, &view), TSR_ERROR_UNSUPPORTED, "but no driver is given");
    TSR_TRY(tsr_dlpack_object_view(object, machine.driver, &view));
    CHECK(memcmp(&view.tensor, &local, sizeof local) == 0);
    CHECK(api->managed_tensor_from_py_object_no_sync(object, &managed) == 0);
    tsr_dlpack_object_destroy(object);
    TSR_TRY(check_struct(&managed->tensor, &local));
    CHECK(api->current_work_stream(managed->tensor.device.type, managed->tensor.device.id, &stream) == 0 && !stream);
    TSR_TRY(tsr_tensor_from_dlpack_versioned(managed, machine.driver, &view));
    TSR_TRY(gather_borrowed(&view.tensor, layout));
    tsr_dlpack_release_versioned(managed);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void objects_lend_memory_of_gpus(void **state)
{
    (void)state;
    on_gpus(hold_and_lend);
}

/* Memory that CUDA manages is a GPU's, pinned memory the host's. */
static tsr_status read_kinds(tsr_comm *comm, void *arg)
{
    rows_memory memory;
    tsr_tensor view;
    int64_t dims[] = {ROWS, COLUMNS};
    (void)arg;
    TSR_TRY(rows_memory_take(device_of(comm), COUNT * sizeof(float), &memory));
    dl_tensor given = {.data = memory.data, .device = {13, memory.device.index}, .ndim = 2, .dtype = {2, 32, 1}};
    given.shape = dims;
    TSR_TRY(tsr_tensor_from_dltensor(&given, machine.driver, &view));
    CHECK(view.device.driver == machine.driver && view.device.index == memory.device.index);
    given.device.type = 3;
    TSR_TRY(tsr_tensor_from_dltensor(&given, machine.driver, &view));
    CHECK(!view.device.driver);
    rows_memory_free(&memory);
    return TSR_OK;
}

static void kinds_of_memory_are_told_apart(void **state)
{
    (void)state;
    on_gpus(read_kinds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_gpus_is_lent_and_borrowed),
        cmocka_unit_test(what_is_written_to_borrowed_memory_is_seen),
        cmocka_unit_test(objects_lend_memory_of_gpus),
        cmocka_unit_test(kinds_of_memory_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
