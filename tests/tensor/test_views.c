/* Views of dtensors: whose memory they have, how long, and which are refused. */
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROWS = 4, COLUMNS = 6 };

static const int64_t shape[] = {ROWS, COLUMNS};

/* The transpose of every second column. */
static tsr_status make_view(const tsr_mesh *mesh, const tsr_dtensor *x, tsr_dtensor **out)
{
    static const int64_t half[] = {COLUMNS / 2, ROWS};
    tsr_layout *layout;
    tsr_tensor local = tsr_dtensor_to_local(x);
    const int64_t rows = local.shape[0];
    local.shape[0] = COLUMNS / 2;
    local.shape[1] = rows;
    local.strides[0] = 2;
    local.strides[1] = COLUMNS;
    TSR_TRY(tsr_layout_parse(mesh, "S(1)", 2, half, TSR_I32, &layout));
    const tsr_status status = tsr_dtensor_view(x, &local, layout, out);
    tsr_layout_destroy(layout);
    return status;
}

/* The view of a view keeps the memory of both's parent, after all but it are gone. */
static tsr_status outlive(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *view = NULL, *inner = NULL, *whole = NULL;
    double sum = 0;
    (void)arg;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    TSR_TRY(numbered_over(mesh, "S(0)", shape, 1, &x));
    TSR_TRY(make_view(mesh, x, &view));
    TSR_TRY(tsr_dtensor_fill(view, 7, NULL));
    TSR_TRY(tsr_full_tensor(x, &whole));
    const int32_t *const values = tsr_dtensor_to_local(whole).data;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        CHECK(values[i] == (i % 2 ? i : 7));
    tsr_dtensor_destroy(whole);
    const tsr_tensor local = tsr_dtensor_to_local(view);
    TSR_TRY(tsr_dtensor_view(view, &local, tsr_dtensor_layout(view), &inner));
    CHECK(tsr_dtensor_to_local(inner).data == tsr_dtensor_to_local(x).data);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(view);
    TSR_TRY(tsr_dtensor_sum(inner, &sum));
    CHECK(sum == 7 * ROWS * COLUMNS / 2);
    tsr_dtensor_destroy(inner);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_view_shares_memory_and_keeps_it(void **state)
{
    (void)state;
    run_ranks(2, outlive, NULL);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *floats = NULL;
    tsr_dtensor *x = NULL, *view = NULL;
    (void)arg;
    TSR_TRY(mesh_over(comm, "2", &mesh));
    TSR_TRY(numbered_over(mesh, "S(0)", shape, 1, &x));
    TSR_TRY(tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &floats));
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    tsr_tensor other = local;
    CHECK_ERROR(tsr_dtensor_view(NULL, &local, layout, &view), TSR_ERROR_ARGUMENT, "parent is NULL");
    CHECK_ERROR(tsr_dtensor_view(x, NULL, layout, &view), TSR_ERROR_ARGUMENT, "local is NULL");
    CHECK_ERROR(tsr_dtensor_view(x, &local, NULL, &view), TSR_ERROR_ARGUMENT, "layout is NULL");
    CHECK_ERROR(tsr_dtensor_view(x, &local, layout, NULL), TSR_ERROR_ARGUMENT, "out is NULL");
    CHECK_ERROR(tsr_dtensor_view(x, &local, floats, &view), TSR_ERROR_ARGUMENT, "the layout is of f32, but parent is");
    other.shape[0] = 1;
    CHECK_ERROR(tsr_dtensor_view(x, &other, layout, &view), TSR_ERROR_ARGUMENT,
                "tsr_dtensor_view: local has shape 1x6, but");
    other = local;
    other.data = (int32_t *)local.data + 1;
    CHECK_ERROR(tsr_dtensor_view(x, &other, layout, &view), TSR_ERROR_ARGUMENT, "outside of parent's local tensor");
    other = local;
    other.strides[0] = INT64_MAX / 2;
    CHECK_ERROR(tsr_dtensor_view(x, &other, layout, &view), TSR_ERROR_ARGUMENT, "outside of parent's local tensor");
    other.strides[0] = -1;
    CHECK_ERROR(tsr_dtensor_view(x, &other, layout, &view), TSR_ERROR_ARGUMENT, "strides are 0 or more");
    other.strides[0] = 0;
    TSR_TRY(tsr_dtensor_view(x, &other, layout, &view));
    const tsr_tensor repeated = tsr_dtensor_to_local(view);
    CHECK(tsr_tensor_overlaps(&repeated));
    tsr_dtensor_destroy(view);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(floats);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void what_is_no_part_of_the_parent_is_refused(void **state)
{
    (void)state;
    run_ranks(2, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_shares_memory_and_keeps_it),
        cmocka_unit_test(what_is_no_part_of_the_parent_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
