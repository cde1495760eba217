/* Sums and norms over all elements: exact, whatever the layout, the dtype and the ranks. */
#include "ranks.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS = 13, COLUMNS = 7, COUNT = ROWS * COLUMNS };

static const char *const layouts[] = {
    "R,R",
    "S(0),R",
    "R,S(1)",
    "S(0),S(1)",
    "S(0),S(0)",
    "S(0)[1],S(0)[0]",
    "S(0;interleave=2),S(1;balanced)",
    "S(1;sizes=7,0),R",
};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

static const int64_t shape[] = {ROWS, COLUMNS};

/* The sum and the norm of a tensor that every rank has, under a layout on 2x2. */
static tsr_status sum_of(tsr_comm *comm, tsr_tensor global, const char *placements, double *sum, double *norm)
{
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL;
    TSR_TRY(mesh_over(comm, "2x2", &mesh));
    TSR_TRY(tsr_distribute(&global, mesh, placements, &x));
    CHECK(tsr_dtensor_count(x) == global.shape[0] * global.shape[1]);
    tsr_status status = sum ? tsr_dtensor_sum(x, sum) : TSR_OK;
    if (status == TSR_OK && norm)
        status = tsr_dtensor_norm(x, norm);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status sum_as(tsr_comm *comm, void *values, tsr_dtype dtype, const char *placements, double *sum,
                         double *norm)
{
    return sum_of(comm, tsr_tensor_contiguous(values, dtype, 2, shape), placements, sum, norm);
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Checks sum and norm under all layouts; a norm of -1 is not checked. */
static tsr_status expect(tsr_comm *comm, void *values, tsr_dtype dtype, double want_sum, double want_norm)
{
    for (int i = 0; i < LAYOUTS; i++) {
        double sum = -7, norm = -7;
        TSR_TRY(sum_as(comm, values, dtype, layouts[i], &sum, &norm));
        if (!same_bits(sum, want_sum) || (want_norm != -1 && !same_bits(norm, want_norm)))
            return tsr_status_set(TSR_ERROR_INTERNAL, "%s as %s: sum %a, not %a; norm %a, not %a",
                                  tsr_dtype_name(dtype), layouts[i], sum, want_sum, norm, want_norm);
    }
    return TSR_OK;
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Multiples of 2^-20 and of their squares' 2^-40, which 64 bits add up exactly. */
static tsr_status fixed_point(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (uint64_t seed = 0; seed < 20; seed++) {
        float narrow[COUNT];
        double wide[COUNT];
        int64_t sum = 0, squares = 0;
        for (int i = 0; i < COUNT; i++) {
            const int64_t value = (int64_t)(mix(seed * 1000 + (uint64_t)i + 1) % (1 << 25)) - (1 << 24);
            narrow[i] = (float)value * 0x1p-20F;
            wide[i] = (double)value * 0x1p-20;
            sum += value;
            squares += value * value;
        }
        const double norm = sqrt((double)squares) * 0x1p-20;
        TSR_TRY(expect(comm, narrow, TSR_F32, (double)sum * 0x1p-20, norm));
        TSR_TRY(expect(comm, wide, TSR_F64, (double)sum * 0x1p-20, norm));
    }
    return TSR_OK;
}

/* So many elements that narrow ones are added by way of bins, which fill up. */
enum { MANY_ROWS = 64, MANY_COLUMNS = 1024, MANY = MANY_ROWS * MANY_COLUMNS };

static tsr_status expect_many(tsr_comm *comm, float *values, double want_sum, double want_norm)
{
    static const char *const many_layouts[] = {"R,R", "S(0),R", "S(0),S(1)", "S(1;interleave=4),S(0;balanced)"};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, (const int64_t[]){MANY_ROWS, MANY_COLUMNS});
    for (int i = 0; i < 4; i++) {
        double sum = -7, norm = -7;
        TSR_TRY(sum_of(comm, global, many_layouts[i], &sum, &norm));
        if (!same_bits(sum, want_sum) || !same_bits(norm, want_norm))
            return tsr_status_set(TSR_ERROR_INTERNAL, "many as %s: sum %a, not %a; norm %a, not %a", many_layouts[i],
                                  sum, want_sum, norm, want_norm);
    }
    return TSR_OK;
}

static tsr_status add_many(tsr_comm *comm, void *arg)
{
    float *values = malloc(MANY * sizeof *values);
    int64_t sum = 0, squares = 0;
    (void)arg;
    for (int i = 0; i < MANY; i++) {
        const int64_t value = (int64_t)(mix((uint64_t)i + 1) % (1 << 23)) - (1 << 22);
        values[i] = (float)value * 0x1p-149F;
        sum += value;
        squares += value * value;
    }
    TSR_TRY(expect_many(comm, values, (double)sum * 0x1p-149, sqrt((double)squares) * 0x1p-149));
    /* The largest mantissas. */
    for (int i = 0; i < MANY; i++)
        values[i] = i % 4 == 0 ? 0x1.fffffep127F : -0x1.fffffep127F;
    const double norm = sqrt((double)((INT64_C(1) << 48) - (INT64_C(1) << 25) + 1)) * 0x1p8 * 0x1p104;
    TSR_TRY(expect_many(comm, values, -0x1.fffffep127 * (MANY / 2), norm));
    values[1] = -INFINITY;
    TSR_TRY(expect_many(comm, values, -(double)INFINITY, (double)INFINITY));
    values[MANY - 1] = INFINITY;
    TSR_TRY(expect_many(comm, values, (double)NAN, (double)INFINITY));
    for (int i = 0; i < MANY; i++)
        values[i] = -0.0F;
    TSR_TRY(expect_many(comm, values, 0, 0));
    free(values);
    return TSR_OK;
}

static void sums_are_rounded_once_from_the_exact_value(void **state)
{
    (void)state;
    run_ranks(4, fixed_point, NULL);
    run_ranks(4, add_many, NULL);
}

/* Elements of every magnitude: what sums in any order would lose. */
static tsr_status any_magnitude(tsr_comm *comm, void *arg)
{
    double values[COUNT] = {0};
    (void)arg;
    TSR_TRY(expect(comm, values, TSR_F64, 0.0, 0.0));
    values[0] = 0x1p1000;
    values[20] = 1;
    values[40] = -0x1p1000;
    values[60] = 0x1p-1074;
    TSR_TRY(expect(comm, values, TSR_F64, 1.0, sqrt(2) * 0x1p1000));
    values[20] = 0;
    TSR_TRY(expect(comm, values, TSR_F64, 0x1p-1074, -1));
    values[60] = -0x1p-1074;
    TSR_TRY(expect(comm, values, TSR_F64, -0x1p-1074, -1));
    for (int i = 0; i < COUNT; i++)
        values[i] = -0.0;
    TSR_TRY(expect(comm, values, TSR_F64, 0.0, 0.0));
    /* Half a unit in the last place rounds to even, and up with the smallest excess. */
    memset(values, 0, sizeof values);
    values[3] = 1;
    values[90] = 0x1p-53;
    TSR_TRY(expect(comm, values, TSR_F64, 1.0, -1));
    values[50] = 0x1p-1074;
    TSR_TRY(expect(comm, values, TSR_F64, 1.0 + 0x1p-52, -1));
    values[3] = -1;
    values[90] = -0x1p-53;
    TSR_TRY(expect(comm, values, TSR_F64, -1.0, -1));
    return TSR_OK;
}

/* Norms whose squares are outside of f64's range, and sums that are. */
static tsr_status the_ends_of_f64(tsr_comm *comm, void *arg)
{
    double values[COUNT] = {0};
    (void)arg;
    values[7] = 3 * 0x1p1000;
    values[8] = -4 * 0x1p1000;
    TSR_TRY(expect(comm, values, TSR_F64, -0x1p1000, 5 * 0x1p1000));
    values[7] = 3 * 0x1p-1070;
    values[8] = 4 * 0x1p-1070;
    TSR_TRY(expect(comm, values, TSR_F64, 7 * 0x1p-1070, 5 * 0x1p-1070));
    values[7] = values[8] = 0x1.fffffffffffffp1023;
    TSR_TRY(expect(comm, values, TSR_F64, (double)INFINITY, (double)INFINITY));
    values[9] = -0x1.fffffffffffffp1023;
    TSR_TRY(expect(comm, values, TSR_F64, 0x1.fffffffffffffp1023, -1));
    return TSR_OK;
}

static void no_magnitude_is_lost(void **state)
{
    (void)state;
    run_ranks(4, any_magnitude, NULL);
    run_ranks(4, the_ends_of_f64, NULL);
}

static tsr_status not_finite(tsr_comm *comm, void *arg)
{
    float values[COUNT] = {0};
    (void)arg;
    values[5] = -INFINITY;
    TSR_TRY(expect(comm, values, TSR_F32, -(double)INFINITY, (double)INFINITY));
    values[80] = INFINITY;
    TSR_TRY(expect(comm, values, TSR_F32, (double)NAN, (double)INFINITY));
    values[80] = -NAN;
    TSR_TRY(expect(comm, values, TSR_F32, (double)NAN, (double)NAN));
    return TSR_OK;
}

static void infinities_and_nan_pass_on(void **state)
{
    (void)state;
    run_ranks(4, not_finite, NULL);
}

static tsr_status integers(tsr_comm *comm, void *arg)
{
    int64_t i64[COUNT] = {0};
    uint64_t u64[COUNT] = {0};
    int8_t i8[COUNT] = {0};
    uint8_t u8[COUNT] = {0};
    int16_t i16[COUNT] = {0};
    uint16_t u16[COUNT] = {0};
    int32_t i32[COUNT] = {0};
    uint32_t u32[COUNT] = {0};
    (void)arg;
    i64[1] = i64[2] = i64[90] = INT64_MIN;
    i64[3] = 1;
    TSR_TRY(expect(comm, i64, TSR_I64, -3 * 0x1p63, -1));
    i64[1] = i64[2] = i64[90] = 0;
    i64[5] = INT64_MIN;
    TSR_TRY(expect(comm, i64, TSR_I64, -0x1p63, 0x1p63));
    u64[0] = u64[90] = UINT64_MAX;
    TSR_TRY(expect(comm, u64, TSR_U64, 0x1p65, -1));
    u64[45] = 2;
    TSR_TRY(expect(comm, u64, TSR_U64, 0x1p65, -1));
    for (int i = 0; i < COUNT; i++) {
        i8[i] = -128;
        u8[i] = 255;
        i16[i] = INT16_MIN;
        u16[i] = UINT16_MAX;
        i32[i] = INT32_MIN;
        u32[i] = UINT32_MAX;
    }
    TSR_TRY(expect(comm, i8, TSR_I8, -128.0 * COUNT, sqrt(COUNT) * 128));
    TSR_TRY(expect(comm, u8, TSR_U8, 255.0 * COUNT, sqrt(255.0 * 255 * COUNT)));
    TSR_TRY(expect(comm, i16, TSR_I16, -0x1p15 * COUNT, sqrt(COUNT) * 0x1p15));
    TSR_TRY(expect(comm, u16, TSR_U16, 65535.0 * COUNT, sqrt(65535.0 * 65535 * COUNT)));
    TSR_TRY(expect(comm, i32, TSR_I32, -0x1p31 * COUNT, sqrt(COUNT) * 0x1p31));
    TSR_TRY(expect(comm, u32, TSR_U32, 4294967295.0 * COUNT, -1));
    memset(u8, 1, sizeof u8);
    return expect(comm, u8, TSR_BOOL, COUNT, sqrt(COUNT));
}

/* 1.5 in each narrow dtype. */
static tsr_status narrow_floats(tsr_comm *comm, void *arg)
{
    uint16_t half[COUNT];
    uint8_t eight[COUNT];
    (void)arg;
    const struct {
        tsr_dtype dtype;
        unsigned bits;
    } rows[] = {{TSR_F16, 0x3e00}, {TSR_BF16, 0x3fc0}, {TSR_F8E4M3, 0x3c}, {TSR_F8E5M2, 0x3e}};
    for (int r = 0; r < 4; r++) {
        for (int i = 0; i < COUNT; i++) {
            half[i] = (uint16_t)rows[r].bits;
            eight[i] = (uint8_t)rows[r].bits;
        }
        TSR_TRY(expect(comm, r < 2 ? (void *)half : (void *)eight, rows[r].dtype, 1.5 * COUNT, sqrt(2.25 * COUNT)));
    }
    return TSR_OK;
}

static void every_dtype_has_its_sum(void **state)
{
    (void)state;
    run_ranks(4, integers, NULL);
    run_ranks(4, narrow_floats, NULL);
}

static tsr_status complex_numbers(tsr_comm *comm, void *arg)
{
    float values[2 * COUNT] = {0};
    double norm = -7, sum = -7;
    (void)arg;
    values[11] = 3;
    values[150] = 4;
    for (int i = 0; i < LAYOUTS; i++) {
        TSR_TRY(sum_as(comm, values, TSR_C64, layouts[i], NULL, &norm));
        CHECK(norm == 5);
    }
    CHECK_ERROR(sum_as(comm, values, TSR_C64, "R,R", &sum, NULL), TSR_ERROR_UNSUPPORTED, "x is of c64");
    CHECK(sum == -7);
    return TSR_OK;
}

static void complex_dtypes_have_a_norm(void **state)
{
    (void)state;
    run_ranks(4, complex_numbers, NULL);
}

/* Strides, ranks outside the mesh, and scalars. */
static tsr_status odd_shapes(tsr_comm *comm, void *arg)
{
    float memory[64];
    int inside;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_layout *layout = NULL, *scalar = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    double sum = 0, norm = 0;
    (void)arg;
    for (int i = 0; i < 64; i++)
        memory[i] = i % 2 ? 1000 : 1;
    TSR_TRY(layout_over(comm, "2", "6x4", "S(0)", TSR_F32, &layout));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    tsr_tensor local = tsr_tensor_contiguous(memory, TSR_F32, 2, (const int64_t[]){3, 4});
    local.strides[1] = 2;
    local.strides[0] = 8;
    if (!inside)
        local = tsr_tensor_contiguous(NULL, TSR_F32, 1, (const int64_t[]){0});
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    TSR_TRY(tsr_dtensor_sum(x, &sum));
    TSR_TRY(tsr_dtensor_norm(x, &norm));
    CHECK(sum == 24 && norm == sqrt(24));
    TSR_TRY(layout_over(comm, "3", "scalar", "R", TSR_F32, &scalar));
    TSR_TRY(tsr_dtensor_create(scalar, tsr_device_host(), &y));
    TSR_TRY(tsr_dtensor_fill(y, -2.5, NULL));
    TSR_TRY(tsr_dtensor_sum(y, &sum));
    TSR_TRY(tsr_dtensor_norm(y, &norm));
    CHECK(sum == -2.5 && norm == 2.5 && tsr_dtensor_count(y) == 1 && tsr_dtensor_count(NULL) == 0);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(scalar);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void strides_scalars_and_ranks_outside_are_no_exception(void **state)
{
    (void)state;
    run_ranks(3, odd_shapes, NULL);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    tsr_layout *partial = NULL, *rows = NULL, *columns = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    double sum = -7;
    const int rank = tsr_comm_rank(comm);
    (void)arg;
    TSR_TRY(layout_over(comm, "3", "6x6", "P", TSR_F32, &partial));
    TSR_TRY(tsr_dtensor_create(partial, tsr_device_host(), &x));
    CHECK_ERROR(tsr_dtensor_sum(x, &sum), TSR_ERROR_UNSUPPORTED, "the Partial of mesh dim 0 is reduced");
    CHECK_ERROR(tsr_dtensor_norm(x, &sum), TSR_ERROR_UNSUPPORTED, "tsr_redistribute_to()");
    CHECK_ERROR(tsr_dtensor_sum(NULL, &sum), TSR_ERROR_ARGUMENT, "tsr_dtensor_sum: x is NULL");
    CHECK_ERROR(tsr_dtensor_norm(NULL, &sum), TSR_ERROR_ARGUMENT, "tsr_dtensor_norm: x is NULL");
    TSR_TRY(layout_over(comm, "3", "6x6", "S(0)", TSR_F32, &rows));
    TSR_TRY(layout_over(comm, "3", "6x6", "S(1)", TSR_F32, &columns));
    tsr_dtensor_destroy(x);
    TSR_TRY(tsr_dtensor_create(rows, tsr_device_host(), &x));
    TSR_TRY(tsr_dtensor_create(columns, tsr_device_host(), &y));
    TSR_TRY(tsr_dtensor_fill(x, 1, NULL));
    TSR_TRY(tsr_dtensor_fill(y, 1, NULL));
    /* One rank's fault is told to all, and ranks with another tensor are named. */
    CHECK_ERROR(tsr_dtensor_sum(x, rank == 1 ? NULL : &sum), rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                "tsr_dtensor_sum: sum is NULL");
    CHECK_ERROR(tsr_dtensor_sum(rank == 2 ? y : x, &sum), TSR_ERROR_ARGUMENT, "S(1) on mesh 3");
    CHECK_ERROR(rank == 1 ? tsr_dtensor_norm(x, &sum) : tsr_dtensor_sum(x, &sum), TSR_ERROR_ARGUMENT,
                "tsr_dtensor_norm of");
    CHECK(sum == -7);
    TSR_TRY(tsr_dtensor_sum(x, &sum));
    CHECK(sum == 36);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(columns);
    tsr_layout_destroy(rows);
    tsr_layout_destroy(partial);
    return TSR_OK;
}

static void what_has_no_sum_is_refused_on_all_ranks(void **state)
{
    (void)state;
    run_ranks(3, refuse, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_rounded_once_from_the_exact_value),
        cmocka_unit_test(no_magnitude_is_lost),
        cmocka_unit_test(infinities_and_nan_pass_on),
        cmocka_unit_test(every_dtype_has_its_sum),
        cmocka_unit_test(complex_dtypes_have_a_norm),
        cmocka_unit_test(strides_scalars_and_ranks_outside_are_no_exception),
        cmocka_unit_test(what_has_no_sum_is_refused_on_all_ranks),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
