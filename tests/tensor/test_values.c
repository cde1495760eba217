/* Dtensors like others, filled and accumulated: every dtype, layout and stride, byte for byte. */
#include "ranks.h"
#include "support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 6, COUNT = ROWS * COLUMNS };

static tsr_status make(tsr_comm *comm, const char *mesh, const char *placements, tsr_dtype dtype, tsr_dtensor **out)
{
    tsr_layout *layout = NULL;
    TSR_TRY(layout_over(comm, mesh, "5x6", placements, dtype, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status look_alike(tsr_comm *comm, void *arg)
{
    tsr_dtensor *x = NULL, *y = NULL, *z = NULL;
    tsr_layout *avg = NULL;
    (void)arg;
    TSR_TRY(make(comm, "2x2", "S(0),P", TSR_BF16, &x));
    TSR_TRY(tsr_dtensor_like(x, &y));
    CHECK(tsr_dtensor_layout(y) == tsr_dtensor_layout(x));
    const tsr_tensor a = tsr_dtensor_to_local(x), b = tsr_dtensor_to_local(y);
    CHECK(a.data != b.data && b.dtype == TSR_BF16 && tsr_tensor_is_contiguous(&b));
    CHECK(tsr_dtensor_count(y) == COUNT);
    TSR_TRY(tsr_dtensor_like_as(x, TSR_F32, &z));
    const tsr_layout *layout = tsr_dtensor_layout(z);
    CHECK(tsr_layout_dtype(layout) == TSR_F32 && tsr_layout_placements(layout)[0].kind == TSR_SHARD);
    CHECK(tsr_layout_placements(layout)[1].kind == TSR_PARTIAL && tsr_dtensor_to_local(z).shape[0] == a.shape[0]);
    tsr_dtensor_destroy(z);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    TSR_TRY(layout_over(comm, "4", "5x6", "P(avg)", TSR_F32, &avg));
    TSR_TRY(tsr_dtensor_create(avg, tsr_device_host(), &x));
    z = NULL;
    CHECK_ERROR(tsr_dtensor_like_as(x, TSR_I32, &z), TSR_ERROR_ARGUMENT, "avg");
    CHECK_ERROR(tsr_dtensor_like_as(x, TSR_DTYPE_NONE, &z), TSR_ERROR_ARGUMENT, "tsr_dtensor_like_as: ");
    CHECK_ERROR(tsr_dtensor_like(NULL, &z), TSR_ERROR_ARGUMENT, "tsr_dtensor_like: x is NULL");
    CHECK_ERROR(tsr_dtensor_like(x, NULL), TSR_ERROR_ARGUMENT, "tsr_dtensor_like: out is NULL");
    CHECK_ERROR(tsr_dtensor_like_as(NULL, TSR_F32, &z), TSR_ERROR_ARGUMENT, "tsr_dtensor_like_as: x is NULL");
    CHECK_ERROR(tsr_dtensor_like_as(x, TSR_F32, NULL), TSR_ERROR_ARGUMENT, "tsr_dtensor_like_as: out is NULL");
    CHECK(!z);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(avg);
    return TSR_OK;
}

static void a_dtensor_like_another_has_its_layout_and_own_memory(void **state)
{
    (void)state;
    run_ranks(4, look_alike, NULL);
}

/* A value and the element that it becomes. */
typedef struct filling {
    tsr_dtype dtype;
    double value;
    unsigned char bytes[16];
} filling;

static const filling fillings[] = {
    {TSR_F64, 0.1, {0x9a, 0x99, 0x99, 0x99, 0x99, 0x99, 0xb9, 0x3f}},
    {TSR_F32, 0.1, {0xcd, 0xcc, 0xcc, 0x3d}},
    {TSR_F32, 1e300, {0, 0, 0x80, 0x7f}},
    {TSR_F16, -1.5, {0, 0xbe}},
    {TSR_F16, 0x1.002p0, {0, 0x3c}}, /* half of the last place: to even */
    {TSR_BF16, 0x1.03p0, {0x82, 0x3f}},
    {TSR_F8E4M3, 448, {0x7e}},
    {TSR_F8E5M2, 57344, {0x7b}},
    {TSR_I64, -0x1p63, {0, 0, 0, 0, 0, 0, 0, 0x80}},
    {TSR_U64, 0x1p63, {0, 0, 0, 0, 0, 0, 0, 0x80}},
    {TSR_I32, -2, {0xfe, 0xff, 0xff, 0xff}},
    {TSR_U32, 4294967295.0, {0xff, 0xff, 0xff, 0xff}},
    {TSR_I16, -32768, {0, 0x80}},
    {TSR_U16, 65535, {0xff, 0xff}},
    {TSR_I8, -128, {0x80}},
    {TSR_U8, 255, {0xff}},
    {TSR_BOOL, 1, {1}},
    {TSR_C64, 0.1, {0xcd, 0xcc, 0xcc, 0x3d, 0, 0, 0, 0}},
    {TSR_C128, -2, {0, 0, 0, 0, 0, 0, 0, 0xc0}},
};

static tsr_status fill_each(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof fillings / sizeof *fillings; i++) {
        const filling *f = &fillings[i];
        const size_t bytes = tsr_dtype_bytes(f->dtype);
        tsr_dtensor *x = NULL;
        TSR_TRY(make(comm, "3", "S(0)", f->dtype, &x));
        TSR_TRY(tsr_dtensor_fill(x, f->value, NULL));
        const tsr_tensor local = tsr_dtensor_to_local(x);
        for (int64_t at = 0; at < local.shape[0] * local.shape[1]; at++)
            if (memcmp((const char *)local.data + (size_t)at * bytes, f->bytes, bytes) != 0)
                return tsr_status_set(TSR_ERROR_INTERNAL, "%g of %s is not what it should be", f->value,
                                      tsr_dtype_name(f->dtype));
        tsr_dtensor_destroy(x);
    }
    return TSR_OK;
}

/* Partials are filled so that they reduce to the value. */
static tsr_status fill_terms(tsr_comm *comm, void *arg)
{
    static const char *const partials[] = {"P,S(1)", "P,P", "P(avg),P", "P(prod),R", "P(min),P(min)", "S(0),P(max)"};
    (void)arg;
    for (size_t i = 0; i < sizeof partials / sizeof *partials; i++) {
        tsr_dtensor *x = NULL, *whole = NULL;
        TSR_TRY(make(comm, "2x2", partials[i], TSR_F32, &x));
        TSR_TRY(tsr_dtensor_fill(x, 0.7F, NULL));
        TSR_TRY(tsr_full_tensor(x, &whole));
        const float *values = tsr_dtensor_to_local(whole).data;
        for (int at = 0; at < COUNT; at++)
            CHECK(values[at] == 0.7F);
        tsr_dtensor_destroy(whole);
        tsr_dtensor_destroy(x);
    }
    tsr_dtensor *x = NULL;
    TSR_TRY(make(comm, "4", "P", TSR_F32, &x));
    TSR_TRY(tsr_dtensor_fill(x, 0.7F, NULL));
    const float first = *(const float *)tsr_dtensor_to_local(x).data;
    CHECK(tsr_comm_rank(comm) == 0 ? first == 0.7F : first == 0 && signbit(first));
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

/* A column of a matrix, and ranks outside the mesh. */
static tsr_status fill_some(tsr_comm *comm, void *arg)
{
    int32_t memory[40];
    int inside;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_layout *layout = NULL;
    tsr_dtensor *x = NULL;
    (void)arg;
    for (int i = 0; i < 40; i++)
        memory[i] = i;
    TSR_TRY(layout_over(comm, "2", "8x2", "S(0)", TSR_I32, &layout));
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(layout), coordinate, &inside));
    tsr_tensor local = tsr_tensor_contiguous(memory, TSR_I32, 2, (const int64_t[]){4, 2});
    local.strides[0] = 10;
    local.strides[1] = 3;
    if (!inside)
        local = tsr_tensor_contiguous(NULL, TSR_I32, 1, (const int64_t[]){0});
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    TSR_TRY(tsr_dtensor_fill(x, -1, NULL));
    for (int i = 0; i < 40; i++)
        CHECK(memory[i] == (inside && (i % 10 == 0 || i % 10 == 3) ? -1 : i));
    tsr_dtensor_destroy(x);
    local.strides[0] = 0;
    if (inside) {
        TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
        CHECK_ERROR(tsr_dtensor_fill(x, 1, NULL), TSR_ERROR_ARGUMENT, "elements of x share memory");
        tsr_dtensor_destroy(x);
    }
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static tsr_status refuse_values(tsr_comm *comm, void *arg)
{
    static const filling refused[] = {
        {TSR_I32, 0.5, {0}},    {TSR_U8, 256, {0}},          {TSR_U8, -1, {0}},   {TSR_BOOL, 2, {0}},
        {TSR_I64, 0x1p63, {0}}, {TSR_I16, (double)NAN, {0}}, {TSR_I8, -129, {0}}, {TSR_U64, (double)INFINITY, {0}},
    };
    (void)arg;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        tsr_dtensor *x = NULL;
        TSR_TRY(make(comm, "1", "R", refused[i].dtype, &x));
        CHECK_ERROR(tsr_dtensor_fill(x, refused[i].value, NULL), TSR_ERROR_ARGUMENT, tsr_dtype_name(refused[i].dtype));
        CHECK_ERROR(tsr_dtensor_fill(x, 0, &x), TSR_ERROR_ARGUMENT, "the host has one stream");
        tsr_dtensor_destroy(x);
    }
    CHECK_ERROR(tsr_dtensor_fill(NULL, 0, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
    return TSR_OK;
}

static void every_dtype_is_filled_and_rounded_once(void **state)
{
    (void)state;
    run_ranks(3, fill_each, NULL);
}

static void partials_are_filled_with_terms_of_the_value(void **state)
{
    (void)state;
    run_ranks(4, fill_terms, NULL);
}

static void gaps_stay_and_shared_elements_are_refused(void **state)
{
    (void)state;
    run_ranks(3, fill_some, NULL);
}

static void values_that_a_dtype_does_not_hold_are_refused(void **state)
{
    (void)state;
    run_ranks(1, refuse_values, NULL);
}

/* Three additions of terms that a sum in the narrow dtype would round otherwise. */
static tsr_status add_narrow(tsr_comm *comm, void *arg)
{
    tsr_dtensor *x = NULL, *y = NULL;
    (void)arg;
    TSR_TRY(make(comm, "2", "S(1)", TSR_BF16, &x));
    TSR_TRY(make(comm, "2", "S(1)", TSR_BF16, &y));
    TSR_TRY(tsr_dtensor_fill(x, 0x1p-8, NULL));
    TSR_TRY(tsr_dtensor_fill(y, 1 + 0x1p-7, NULL));
    TSR_TRY(tsr_dtensor_accumulate(x, y, NULL));
    /* 1 + 3 * 2^-8 lies between 1 + 2^-7 and 1 + 2^-6: to even. */
    const tsr_tensor local = tsr_dtensor_to_local(y);
    for (int64_t i = 0; i < local.shape[0] * local.shape[1]; i++)
        CHECK(((const uint16_t *)local.data)[i] == 0x3f82);
    tsr_dtensor_destroy(y);
    TSR_TRY(tsr_dtensor_like_as(x, TSR_F32, &y));
    TSR_TRY(tsr_dtensor_fill(y, 0x1p-20, NULL));
    TSR_TRY(tsr_dtensor_accumulate(x, y, NULL));
    TSR_TRY(tsr_dtensor_accumulate(x, y, NULL));
    const tsr_tensor wide = tsr_dtensor_to_local(y);
    for (int64_t i = 0; i < wide.shape[0] * wide.shape[1]; i++)
        CHECK(((const float *)wide.data)[i] == 0x1p-7F + 0x1p-20F);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

/* Gradients that are terms are accumulated, then reduced once. */
static tsr_status add_terms(tsr_comm *comm, void *arg)
{
    static const char *const layouts[] = {"P,R", "P(avg),S(0)", "S(0),S(1)", "S(0;interleave=2),P"};
    (void)arg;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        tsr_dtensor *x = NULL, *y = NULL, *whole = NULL;
        TSR_TRY(make(comm, "2x2", layouts[i], TSR_F32, &x));
        TSR_TRY(tsr_dtensor_like(x, &y));
        TSR_TRY(tsr_dtensor_fill(x, 2, NULL));
        TSR_TRY(tsr_dtensor_fill(y, 0.5, NULL));
        TSR_TRY(tsr_dtensor_accumulate(x, y, NULL));
        TSR_TRY(tsr_dtensor_accumulate(y, y, NULL));
        TSR_TRY(tsr_full_tensor(y, &whole));
        for (int at = 0; at < COUNT; at++)
            CHECK(((const float *)tsr_dtensor_to_local(whole).data)[at] == 5);
        tsr_dtensor_destroy(whole);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
    }
    return TSR_OK;
}

/* x and y with gaps, in one memory; the gaps stay. */
static tsr_status add_strided(tsr_comm *comm, void *arg)
{
    float memory[120];
    uint16_t half[60];
    tsr_layout *layout = NULL, *narrow = NULL;
    tsr_dtensor *x = NULL, *y = NULL, *z = NULL;
    (void)arg;
    for (int i = 0; i < 120; i++)
        memory[i] = (float)i;
    for (int i = 0; i < 60; i++)
        half[i] = 0x3c00;
    TSR_TRY(layout_over(comm, "1", "5x6", "R", TSR_F32, &layout));
    TSR_TRY(layout_over(comm, "1", "5x6", "R", TSR_F16, &narrow));
    tsr_tensor a = tsr_tensor_contiguous(memory, TSR_F32, 2, (const int64_t[]){5, 6}), b = a, c;
    a.strides[0] = b.strides[0] = 12;
    a.strides[1] = b.strides[1] = 2;
    b.data = memory + 60;
    c = tsr_tensor_contiguous(half, TSR_F16, 2, (const int64_t[]){5, 6});
    c.strides[0] = 12;
    c.strides[1] = 2;
    TSR_TRY(tsr_dtensor_from_local(&a, layout, NULL, &x));
    TSR_TRY(tsr_dtensor_from_local(&b, layout, NULL, &y));
    TSR_TRY(tsr_dtensor_from_local(&c, narrow, NULL, &z));
    TSR_TRY(tsr_dtensor_accumulate(x, y, NULL));
    TSR_TRY(tsr_dtensor_accumulate(z, y, NULL));
    for (int i = 0; i < 120; i++)
        CHECK(memory[i] == (float)(i >= 60 && i % 2 == 0 ? i + i - 60 + 1 : i));
    tsr_dtensor_destroy(y);
    b.data = memory + 2;
    TSR_TRY(tsr_dtensor_from_local(&b, layout, NULL, &y));
    CHECK_ERROR(tsr_dtensor_accumulate(x, y, NULL), TSR_ERROR_ARGUMENT, "x and y overlap");
    tsr_dtensor_destroy(y);
    b.strides[0] = 0;
    b.data = memory + 60;
    TSR_TRY(tsr_dtensor_from_local(&b, layout, NULL, &y));
    CHECK_ERROR(tsr_dtensor_accumulate(x, y, NULL), TSR_ERROR_ARGUMENT, "elements of y share memory");
    tsr_dtensor_destroy(z);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(narrow);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

/* What cannot be added to what. */
static const struct {
    const char *x, *y;
    tsr_dtype x_dtype, y_dtype;
    tsr_status status;
    const char *words;
} impossible[] = {
    {"S(0)", "S(1)", TSR_F32, TSR_F32, TSR_ERROR_ARGUMENT, "x is f32 5x6 S(0)"},
    {"R", "P", TSR_F32, TSR_F32, TSR_ERROR_ARGUMENT, "the same shape, placements and mesh"},
    {"R", "R", TSR_F32, TSR_BF16, TSR_ERROR_ARGUMENT, "x is of f32, y of bf16"},
    {"R", "R", TSR_F16, TSR_BF16, TSR_ERROR_ARGUMENT, "x is of f16, y of bf16"},
    {"R", "R", TSR_I8, TSR_I32, TSR_ERROR_ARGUMENT, "x is of i8, y of i32"},
    {"R", "R", TSR_BOOL, TSR_BOOL, TSR_ERROR_UNSUPPORTED, "bool has no sum"},
    {"P(max)", "P(max)", TSR_F32, TSR_F32, TSR_ERROR_UNSUPPORTED, "y is P(max) on mesh dim 0"},
    {"P(prod)", "P(prod)", TSR_F32, TSR_F32, TSR_ERROR_UNSUPPORTED, "y is P(prod) on mesh dim 0"},
};

static tsr_status refuse_sums(tsr_comm *comm, void *arg)
{
    tsr_dtensor *x = NULL, *y = NULL;
    (void)arg;
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        TSR_TRY(make(comm, "2", impossible[i].x, impossible[i].x_dtype, &x));
        TSR_TRY(make(comm, "2", impossible[i].y, impossible[i].y_dtype, &y));
        CHECK_ERROR(tsr_dtensor_accumulate(x, y, NULL), impossible[i].status, impossible[i].words);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
    }
    TSR_TRY(make(comm, "2", "R", TSR_F32, &x));
    CHECK_ERROR(tsr_dtensor_accumulate(NULL, x, NULL), TSR_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(tsr_dtensor_accumulate(x, NULL, NULL), TSR_ERROR_ARGUMENT, "y is NULL");
    CHECK_ERROR(tsr_dtensor_accumulate(x, x, &x), TSR_ERROR_ARGUMENT, "the host has one stream");
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

/* The stride of a dim of size 1 is free, so both are the same elements. */
static tsr_status add_to_itself(tsr_comm *comm, void *arg)
{
    (void)arg;
    float memory[] = {1, 2, 3};
    tsr_layout *layout;
    tsr_dtensor *x, *y;
    TSR_TRY(layout_over(comm, "1", "1x3", "R", TSR_F32, &layout));
    tsr_tensor local = tsr_tensor_contiguous(memory, TSR_F32, 2, (int64_t[]){1, 3});
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &x));
    local.strides[0] = 77;
    TSR_TRY(tsr_dtensor_from_local(&local, layout, NULL, &y));
    TSR_TRY(tsr_dtensor_accumulate(x, y, NULL));
    CHECK(memory[0] == 2 && memory[1] == 4 && memory[2] == 6);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(layout);
    return TSR_OK;
}

static void a_tensor_is_added_to_itself(void **state)
{
    (void)state;
    run_ranks(1, add_to_itself, NULL);
}

static void narrow_elements_are_added_in_f32_and_rounded_once(void **state)
{
    (void)state;
    run_ranks(2, add_narrow, NULL);
}

static void terms_are_accumulated_as_terms(void **state)
{
    (void)state;
    run_ranks(4, add_terms, NULL);
}

static void strides_are_free_and_gaps_stay(void **state)
{
    (void)state;
    run_ranks(1, add_strided, NULL);
}

static void what_cannot_be_added_is_refused(void **state)
{
    (void)state;
    run_ranks(2, refuse_sums, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dtensor_like_another_has_its_layout_and_own_memory),
        cmocka_unit_test(every_dtype_is_filled_and_rounded_once),
        cmocka_unit_test(partials_are_filled_with_terms_of_the_value),
        cmocka_unit_test(gaps_stay_and_shared_elements_are_refused),
        cmocka_unit_test(values_that_a_dtype_does_not_hold_are_refused),
        cmocka_unit_test(narrow_elements_are_added_in_f32_and_rounded_once),
        cmocka_unit_test(terms_are_accumulated_as_terms),
        cmocka_unit_test(a_tensor_is_added_to_itself),
        cmocka_unit_test(strides_are_free_and_gaps_stay),
        cmocka_unit_test(what_cannot_be_added_is_refused),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
