/* Dtensors over the caller's memory, moved from layout to layout, in place and backward, and
 * gathered whole; also on ranks outside the mesh. */
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A dtensor whose element with global number g is g, made on every rank by itself; `placements`
 * without Partial. */
static tsr_status numbered(tsr_comm *comm, const char *mesh_text, int ndim, const int64_t *shape,
                           const char *placements, tsr_dtensor **out)
{
    tsr_mesh *mesh = NULL;
    int64_t total = 1;
    float values[512];
    for (int d = 0; d < ndim; d++)
        total *= shape[d];
    CHECK(total <= 512);
    for (int64_t i = 0; i < total; i++)
        values[i] = (float)i;
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, ndim, shape);
    TSR_TRY(mesh_over(comm, mesh_text, &mesh));
    const tsr_status status = tsr_distribute(&global, mesh, placements, out);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Every element is `factor` times its global number. */
static tsr_status check_numbered(const tsr_dtensor *x, float factor)
{
    const tsr_layout *layout = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    const int64_t columns = tsr_layout_shape(layout)[1];
    tsr_interval rows[64], across[64];
    size_t row_count, across_count;
    TSR_TRY(tsr_layout_intervals(layout, NULL, 0, rows, 64, &row_count));
    TSR_TRY(tsr_layout_intervals(layout, NULL, 1, across, 64, &across_count));
    const float *at = local.data;
    for (size_t i = 0; i < row_count; i++)
        for (int64_t row = rows[i].begin; row < rows[i].end; row++)
            for (size_t j = 0; j < across_count; j++)
                for (int64_t column = across[j].begin; column < across[j].end; column++)
                    CHECK(*at++ == factor * (float)(row * columns + column));
    return TSR_OK;
}

static const int64_t shape_13x7[] = {13, 7};

static tsr_status round_trips(tsr_comm *comm, void *arg)
{
    (void)arg;
    static const char *const lists[] = {"R,R",       "S(0),R",          "R,S(1)", "S(0),S(1)",
                                        "S(0),S(0)", "S(0)[1],S(0)[0]", "P,S(1)", "S(0;interleave=2),S(1;balanced)"};
    for (int i = 0; i < 8; i++) {
        if (strchr(lists[i], 'P'))
            continue;
        for (int j = 0; j < 8; j++) {
            tsr_dtensor *x = NULL, *y = NULL, *whole = NULL;
            TSR_TRY(numbered(comm, "2x2", 2, shape_13x7, lists[i], &x));
            TSR_TRY(check_numbered(x, 1.0f));
            TSR_TRY(tsr_redistribute_to(x, lists[j], &y));
            TSR_TRY(tsr_full_tensor(y, &whole));
            TSR_TRY(check_numbered(whole, 1.0f));
            const tsr_tensor view = tsr_dtensor_to_local(whole);
            CHECK(view.ndim == 2 && view.shape[0] == 13 && view.shape[1] == 7 && tsr_tensor_is_contiguous(&view));
            tsr_dtensor_destroy(whole);
            tsr_dtensor_destroy(y);
            tsr_dtensor_destroy(x);
        }
    }
    return TSR_OK;
}

static void any_layout_and_back_to_the_whole_tensor(void **state)
{
    (void)state;
    test_case("round trips on 2x2");
    run_ranks(4, round_trips, NULL);
}

/* Writes a placement with explicit sizes for `count` parts, of which the first has everything. */
static char *sizes_text(int count, char *text)
{
    size_t length = (size_t)sprintf(text, "S(0;sizes=13");
    for (int i = 1; i < count; i++)
        length += (size_t)sprintf(text + length, ",0");
    sprintf(text + length, ")");
    return text;
}

static tsr_status refuse_texts(tsr_comm *comm, void *arg)
{
    char text[4096];
    float value = 0;
    const int64_t shape[] = {1, 1};
    const tsr_tensor global = tsr_tensor_contiguous(&value, TSR_F32, 2, shape);
    tsr_dtensor *x = NULL, *y = NULL;
    (void)arg;
    TSR_TRY(numbered(comm, "2x2", 2, shape_13x7, "R,S(0;sizes=13,0)", &x));
    const tsr_mesh *mesh = tsr_layout_mesh(tsr_dtensor_layout(x));
    static const char *const refused[][2] = {
        {"S(0)", "has 1 placement, but the mesh has 2 dims: one each is needed"},
        {"S(0),R,R", "has 3 placements, but the mesh has 2 dims"},
        {"S(0),S(1;even)", "placements \"S(0),S(1;even)\", character 10: expected balanced"},
        {"", "character 1: expected R, S(dim) or P"},
        {"R,S(2)", "shard dim 2"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        CHECK_ERROR(tsr_distribute(&global, mesh, refused[i][0], &y), TSR_ERROR_ARGUMENT, refused[i][1]);
        CHECK_ERROR(tsr_redistribute_to(x, refused[i][0], &y), TSR_ERROR_ARGUMENT, refused[i][1]);
    }
    CHECK_ERROR(tsr_distribute(NULL, mesh, "R,R", &y), TSR_ERROR_ARGUMENT, "tsr_distribute: global is NULL");
    CHECK_ERROR(tsr_distribute(&global, NULL, "R,R", &y), TSR_ERROR_ARGUMENT, "tsr_distribute: mesh is NULL");
    CHECK_ERROR(tsr_distribute(&global, mesh, NULL, &y), TSR_ERROR_ARGUMENT, "tsr_distribute: placements is NULL");
    CHECK_ERROR(tsr_distribute(&global, mesh, "R,R", NULL), TSR_ERROR_ARGUMENT, "tsr_distribute: out is NULL");
    CHECK_ERROR(tsr_redistribute_to(NULL, "R,R", &y), TSR_ERROR_ARGUMENT, "tsr_redistribute_to: x is NULL");
    CHECK_ERROR(tsr_redistribute_to(x, NULL, &y), TSR_ERROR_ARGUMENT, "tsr_redistribute_to: placements is NULL");
    CHECK_ERROR(tsr_redistribute_to(x, "R,R", NULL), TSR_ERROR_ARGUMENT, "tsr_redistribute_to: out is NULL");
    CHECK_ERROR(tsr_redistribute_to(x, sizes_text(1025, text), &y), TSR_ERROR_ARGUMENT,
                "character 2060: there is room for 1024 numbers");
    CHECK_ERROR(tsr_redistribute_to(x, sizes_text(1024, text), &y), TSR_ERROR_ARGUMENT, "has 1 placement,");
    CHECK(!y);
    TSR_TRY(tsr_redistribute_to(x, "S(1) , S(0;sizes=0,13)", &y));
    TSR_TRY(check_numbered(y, 1.0f));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void a_text_is_counted_and_its_mistakes_are_pointed_at(void **state)
{
    (void)state;
    test_case("placements as text");
    run_ranks(4, refuse_texts, NULL);
}

/* Replicate -> Partial -> Replicate gives every bit back, but NaNs become the canonical one. */
static tsr_status there_and_back(tsr_comm *comm, const tsr_layout *whole, const char *partial, tsr_reduce_op op)
{
    const tsr_dtype dtype = tsr_layout_dtype(whole);
    const int64_t count = tsr_layout_shape(whole)[0];
    const size_t bytes = oracle_bytes(dtype);
    unsigned char *values = calloc((size_t)count, bytes);
    for (int64_t i = 0; i < count; i++)
        oracle_element(dtype, 42, i, 0, values + (size_t)i * bytes);
    const tsr_tensor view = tsr_tensor_contiguous(values, dtype, 1, &count);
    tsr_dtensor *x = NULL, *y = NULL, *z = NULL;
    TSR_TRY(tsr_dtensor_from_local(&view, whole, NULL, &x));
    TSR_TRY(tsr_redistribute_to(x, partial, &y));
    TSR_TRY(tsr_redistribute_to(y, "R", &z));
    const tsr_tensor back = tsr_dtensor_to_local(z);
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *is = (const unsigned char *)back.data + (size_t)i * bytes,
                            *was = values + (size_t)i * bytes;
        unsigned char canonical[16];
        oracle_reduce(dtype, op == TSR_PROD ? TSR_MAX : op, 1, was, 1,
                      canonical); /* a reduction of one term changes only NaNs */
        if (memcmp(is, canonical, bytes) != 0)
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s through %s on %d ranks: element %lld changed",
                                  oracle_dtype_name(dtype), partial, tsr_comm_size(comm), (long long)i);
    }
    tsr_dtensor_destroy(z);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    free(values);
    return TSR_OK;
}

static tsr_status all_there_and_back(tsr_comm *comm, void *arg)
{
    (void)arg;
    char mesh[16];
    snprintf(mesh, sizeof mesh, "%d", tsr_comm_size(comm));
    for (int dtype = TSR_F64; dtype < TSR_DTYPE_END; dtype++) {
        const bool complex_type = dtype == TSR_C64 || dtype == TSR_C128;
        tsr_layout *whole = NULL;
        TSR_TRY(layout_over(comm, mesh, "700", "R", (tsr_dtype)dtype, &whole));
        if (oracle_has_op((tsr_dtype)dtype, TSR_SUM))
            TSR_TRY(there_and_back(comm, whole, "P", TSR_SUM));
        if (oracle_has_op((tsr_dtype)dtype, TSR_PROD) && !complex_type)
            TSR_TRY(there_and_back(comm, whole, "P(prod)", TSR_PROD));
        if (oracle_has_op((tsr_dtype)dtype, TSR_MAX))
            TSR_TRY(there_and_back(comm, whole, "P(max)", TSR_MAX));
        if (oracle_has_op((tsr_dtype)dtype, TSR_MIN))
            TSR_TRY(there_and_back(comm, whole, "P(min)", TSR_MIN));
        tsr_layout_destroy(whole);
    }
    return TSR_OK;
}

static void replicate_to_partial_and_back_is_exact_for_all_dtypes(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= 5; ranks++) {
        test_case("R -> P -> R on %d ranks", ranks);
        run_ranks(ranks, all_there_and_back, NULL);
    }
}

static tsr_status change_in_place(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_dtensor *x = NULL;
    const tsr_placement partial[] = {tsr_partial(TSR_SUM), tsr_shard(1)}, whole[] = {tsr_replicate(), tsr_shard(1)};
    const tsr_placement other[] = {tsr_shard(0), tsr_shard(1)};
    TSR_TRY(numbered(comm, "2x2", 2, shape_13x7, "R,S(1)", &x));
    const void *memory = tsr_dtensor_to_local(x).data;
    TSR_TRY(tsr_redistribute_in_place(x, partial, NULL));
    CHECK(tsr_layout_placements(tsr_dtensor_layout(x))[0].kind == TSR_PARTIAL);
    int64_t coordinate[2];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(tsr_dtensor_layout(x)), coordinate, &inside));
    if (coordinate[0] == 0)
        TSR_TRY(check_numbered(x, 1.0f));
    TSR_TRY(tsr_redistribute_in_place(x, whole, NULL));
    TSR_TRY(check_numbered(x, 1.0f));
    CHECK(tsr_dtensor_to_local(x).data == memory);
    CHECK_ERROR(tsr_redistribute_in_place(x, other, NULL), TSR_ERROR_UNSUPPORTED, "S(0)");
    TSR_TRY(check_numbered(x, 1.0f));
    CHECK_ERROR(tsr_redistribute_in_place(NULL, whole, NULL), TSR_ERROR_ARGUMENT, NULL);
    CHECK_ERROR(tsr_redistribute_in_place(x, NULL, NULL), TSR_ERROR_ARGUMENT, "placements");
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void in_place_where_the_cuts_stay(void **state)
{
    (void)state;
    test_case("in place on 2x2");
    run_ranks(4, change_in_place, NULL);
}

static tsr_status go_backward(tsr_comm *comm, void *arg)
{
    (void)arg;
    static const char *const rows[][3] = {
        /* x, the gradient layout of the result, the gradient layout of x */
        {"S(0),R", "R,S(1)", "S(0),R"},
        {"P,S(0)", "S(1),R", "R,S(0)"},
        {"R,R", "S(0),S(1)", "R,R"},
    };
    for (int i = 0; i < 3; i++) {
        tsr_dtensor *dy = NULL, *dx = NULL;
        tsr_layout *x_layout = NULL, *wanted = NULL;
        TSR_TRY(layout_over(comm, "2x2", "13x7", rows[i][0], TSR_F32, &x_layout));
        TSR_TRY(numbered(comm, "2x2", 2, shape_13x7, rows[i][1], &dy));
        TSR_TRY(tsr_redistribute_backward(dy, x_layout, &dx));
        TSR_TRY(layout_over(comm, "2x2", "13x7", rows[i][2], TSR_F32, &wanted));
        CHECK(tsr_layout_equal(tsr_dtensor_layout(dx), wanted));
        TSR_TRY(check_numbered(dx, 1.0f));
        tsr_dtensor_destroy(dx);
        tsr_dtensor_destroy(dy);
        tsr_layout_destroy(x_layout);
        tsr_layout_destroy(wanted);
    }
    tsr_dtensor *dy = NULL, *dx = NULL;
    tsr_layout *most = NULL, *other = NULL;
    TSR_TRY(numbered(comm, "2x2", 2, shape_13x7, "R,R", &dy));
    TSR_TRY(layout_over(comm, "2x2", "13x7", "P(max),R", TSR_F32, &most));
    TSR_TRY(layout_over(comm, "2x2", "13x8", "R,R", TSR_F32, &other));
    CHECK_ERROR(tsr_redistribute_backward(dy, most, &dx), TSR_ERROR_UNSUPPORTED, "max");
    CHECK_ERROR(tsr_redistribute_backward(dy, other, &dx), TSR_ERROR_ARGUMENT, "13x8");
    CHECK(!dx);
    tsr_dtensor_destroy(dy);
    tsr_layout_destroy(most);
    tsr_layout_destroy(other);
    return TSR_OK;
}

static void backward_ends_in_the_gradient_layout(void **state)
{
    (void)state;
    test_case("backward on 2x2");
    run_ranks(4, go_backward, NULL);
}

static tsr_status borrow_memory(tsr_comm *comm, void *arg)
{
    (void)arg;
    float values[8 * 9];
    const int rank = tsr_comm_rank(comm);
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(layout_over(comm, "2", "8x3", "S(0)", TSR_F32, &layout));
    tsr_tensor local = {
        .data = values, .dtype = TSR_F32, .ndim = 2, .shape = {4, 3}, .strides = {1, 9}}; /* columns 9 apart */
    for (int64_t i = 0; i < 4; i++)
        for (int64_t j = 0; j < 3; j++)
            values[i + 9 * j] = (float)((i + 4 * rank) * 3 + j);
    tsr_from_local_options options = TSR_FROM_LOCAL_OPTIONS_INIT;
    options.check = 1;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, &options, &x));
    CHECK(tsr_dtensor_to_local(x).data == values && tsr_dtensor_to_local(x).strides[1] == 9);
    TSR_TRY(tsr_redistribute_to(x, "S(1)", &y));
    TSR_TRY(check_numbered(y, 1.0f));
    tsr_dtensor *again = tsr_dtensor_retain(x);
    tsr_dtensor_destroy(x);
    CHECK(tsr_dtensor_to_local(again).data == values);
    tsr_dtensor_destroy(again);
    tsr_dtensor_destroy(y);

    x = NULL;
    tsr_tensor bad = local;
    bad.shape[0] = 5;
    CHECK_ERROR(tsr_dtensor_from_local(&bad, layout, NULL, &x), TSR_ERROR_ARGUMENT, "4x3");
    bad = local;
    bad.dtype = TSR_I32;
    CHECK_ERROR(tsr_dtensor_from_local(&bad, layout, NULL, &x), TSR_ERROR_ARGUMENT, "i32");
    bad = local;
    bad.ndim = 1;
    CHECK_ERROR(tsr_dtensor_from_local(&bad, layout, NULL, &x), TSR_ERROR_ARGUMENT, NULL);
    bad = local;
    bad.data = NULL;
    CHECK_ERROR(tsr_dtensor_from_local(&bad, layout, NULL, &x), TSR_ERROR_ARGUMENT, "data");
    bad = local;
    bad.strides[0] = -1;
    CHECK_ERROR(tsr_dtensor_from_local(&bad, layout, NULL, &x), TSR_ERROR_ARGUMENT, "-1");
    bad = local;
    bad.device.index = 1;
    CHECK_ERROR(tsr_dtensor_from_local(&bad, layout, NULL, &x), TSR_ERROR_ARGUMENT, "host:1");
    CHECK_ERROR(tsr_dtensor_from_local(NULL, layout, NULL, &x), TSR_ERROR_ARGUMENT, "local");
    CHECK_ERROR(tsr_dtensor_from_local(&local, NULL, NULL, &x), TSR_ERROR_ARGUMENT, "layout");
    CHECK_ERROR(tsr_dtensor_from_local(&local, layout, NULL, NULL), TSR_ERROR_ARGUMENT, "out");
    CHECK(!x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void from_local_borrows_strided_memory_and_checks_it(void **state)
{
    (void)state;
    test_case("from_local");
    run_ranks(2, borrow_memory, NULL);
}

static tsr_status differ(tsr_comm *comm, void *arg)
{
    const int odd = *(const int *)arg, rank = tsr_comm_rank(comm);
    float values[64] = {0};
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    const char *placements = rank == odd ? "R" : "S(0)";
    TSR_TRY(layout_over(comm, "3", "9x2", placements, TSR_F32, &layout));
    int64_t shape[2];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, NULL));
    const tsr_tensor local = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    tsr_from_local_options options = TSR_FROM_LOCAL_OPTIONS_INIT;
    options.check = 1;
    const char *named = odd == 2 ? "rank 2" : "rank 1"; /* the lowest rank that differs from rank 0 */
    CHECK_ERROR(tsr_dtensor_from_local(&local, layout, &options, &x), TSR_ERROR_ARGUMENT, named);
    CHECK(!x && strstr(tsr_status_message(), "S(0)"));
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void from_local_names_the_rank_whose_layout_differs(void **state)
{
    (void)state;
    for (int odd = 0; odd < 3; odd++) {
        test_case("from_local, rank %d differs", odd);
        run_ranks(3, differ, &odd);
    }
}

static tsr_status stay_outside(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_dtensor *x = NULL, *y = NULL, *whole = NULL;
    TSR_TRY(numbered(comm, "2@[3,1]", 2, shape_13x7, "S(0)", &x));
    TSR_TRY(tsr_redistribute_to(x, "S(1)", &y));
    TSR_TRY(tsr_redistribute_into(y, x, NULL));
    TSR_TRY(tsr_full_tensor(x, &whole));
    const tsr_tensor local = tsr_dtensor_to_local(whole);
    if (tsr_comm_rank(comm) % 2 == 1) {
        TSR_TRY(check_numbered(x, 1.0f));
        TSR_TRY(check_numbered(whole, 1.0f));
    } else {
        CHECK(local.ndim == 1 && local.shape[0] == 0 && !local.data);
    }
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void ranks_outside_the_mesh_take_part_with_nothing(void **state)
{
    (void)state;
    test_case("ranks outside");
    run_ranks(4, stay_outside, NULL);
}

static tsr_status count_plans(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_layout *layout = NULL;
    TSR_TRY(numbered(comm, "2", 2, shape_13x7, "S(0)", &x));
    const tsr_mesh *mesh = tsr_layout_mesh(tsr_dtensor_layout(x));
    const tsr_placement across = tsr_shard(1);
    TSR_TRY(tsr_layout_with(tsr_dtensor_layout(x), &across, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), &y));
    for (int i = 0; i < 10; i++)
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
    const tsr_cache_statistics there = tsr_mesh_cache_statistics(mesh);
    CHECK(there.misses == 1 && there.hits == 9 && there.entries == 1);
    for (int i = 0; i < 3; i++)
        TSR_TRY(tsr_redistribute_into(y, x, NULL));
    const tsr_cache_statistics back = tsr_mesh_cache_statistics(mesh);
    CHECK(back.misses == 2 && back.hits == 11 && back.entries == 2);
    TSR_TRY(check_numbered(x, 1.0f));
    CHECK_ERROR(tsr_redistribute_into(NULL, y, NULL), TSR_ERROR_ARGUMENT, NULL);
    CHECK_ERROR(tsr_redistribute_into(x, NULL, NULL), TSR_ERROR_ARGUMENT, NULL);
    CHECK_ERROR(tsr_redistribute_into(x, y, &layout), TSR_ERROR_ARGUMENT, "stream is 0x");
    CHECK_ERROR(tsr_redistribute_batch(1, (const tsr_dtensor *[]){x}, &y, &layout), TSR_ERROR_ARGUMENT, "stream is 0x");
    CHECK_ERROR(tsr_redistribute(x, NULL, &y), TSR_ERROR_ARGUMENT, "placements");
    const tsr_placement far = tsr_shard(2);
    CHECK_ERROR(tsr_redistribute(x, &far, &y), TSR_ERROR_ARGUMENT, "S(2)");
    CHECK_ERROR(tsr_full_tensor(NULL, &y), TSR_ERROR_ARGUMENT, NULL);
    TSR_TRY(tsr_comm_barrier(comm));
    tsr_layout_destroy(layout);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static void a_pair_of_layouts_is_planned_once(void **state)
{
    (void)state;
    test_case("plans counted");
    run_ranks(2, count_plans, NULL);
}

static tsr_status mismatch(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_layout *base = NULL, *shape = NULL, *dtype = NULL;
    tsr_dtensor *x = NULL, *y[2] = {NULL, NULL}, *z = NULL;
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_F32, &base));
    TSR_TRY(layout_over(comm, "2", "8x9", "S(0)", TSR_F32, &shape));
    TSR_TRY(layout_over(comm, "2", "8x8", "S(0)", TSR_F64, &dtype));
    TSR_TRY(tsr_dtensor_create(base, tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_create(shape, tsr_device_host(), &y[0]));
    TSR_TRY(tsr_dtensor_create(dtype, tsr_device_host(), &y[1]));
    CHECK_ERROR(tsr_redistribute_into(x, y[0], NULL), TSR_ERROR_ARGUMENT, "8x9");
    CHECK_ERROR(tsr_redistribute_into(x, y[1], NULL), TSR_ERROR_ARGUMENT, "f64");
    CHECK_ERROR(tsr_dtensor_create(NULL, tsr_device_host(), &z), TSR_ERROR_ARGUMENT, "layout");
    CHECK_ERROR(tsr_dtensor_create(base, tsr_device_host(), NULL), TSR_ERROR_ARGUMENT, "out");
    const tsr_device odd = {NULL, 3};
    CHECK_ERROR(tsr_dtensor_create(base, odd, &z), TSR_ERROR_ARGUMENT, "host:3");
    tsr_layout *abstract = NULL;
    TSR_TRY(layout_over(NULL, "2", "8x8", "S(0)", TSR_F32, &abstract));
    CHECK_ERROR(tsr_dtensor_create(abstract, tsr_device_host(), &z), TSR_ERROR_ARGUMENT, "abstract");
    CHECK(!z);
    TSR_TRY(tsr_comm_barrier(comm));
    for (int i = 0; i < 2; i++)
        tsr_dtensor_destroy(y[i]);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(NULL);
    tsr_layout_destroy(base);
    tsr_layout_destroy(shape);
    tsr_layout_destroy(dtype);
    tsr_layout_destroy(abstract);
    return TSR_OK;
}

static void dtensors_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    test_case("mismatches");
    run_ranks(2, mismatch, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_layout_and_back_to_the_whole_tensor),
        cmocka_unit_test(a_text_is_counted_and_its_mistakes_are_pointed_at),
        cmocka_unit_test(replicate_to_partial_and_back_is_exact_for_all_dtypes),
        cmocka_unit_test(in_place_where_the_cuts_stay),
        cmocka_unit_test(backward_ends_in_the_gradient_layout),
        cmocka_unit_test(from_local_borrows_strided_memory_and_checks_it),
        cmocka_unit_test(from_local_names_the_rank_whose_layout_differs),
        cmocka_unit_test(ranks_outside_the_mesh_take_part_with_nothing),
        cmocka_unit_test(a_pair_of_layouts_is_planned_once),
        cmocka_unit_test(dtensors_that_do_not_fit_are_refused),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
