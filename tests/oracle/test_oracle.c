/* Tests of the model itself, against numbers worked out by hand. */
#include "oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static tsr_placement shard(int dim)
{
    return (tsr_placement){.kind = TSR_SHARD, .dim = dim, .order = TSR_ORDER_DEFAULT};
}

static void expect_owned(const oracle_layout *layout, int64_t position, const char *wanted)
{
    int64_t coordinate[TSR_MAX_DIMS], list[64];
    char text[256] = "";
    oracle_mesh_coordinate(&layout->mesh, position, coordinate);
    const int64_t count = oracle_owned(layout, coordinate, 0, list);
    for (int64_t i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i > 0 ? " " : "", (int)list[i]);
    assert_string_equal(text, wanted);
}

static oracle_layout vector(int64_t length, int ndim, const int64_t *mesh)
{
    oracle_layout layout = {.mesh = oracle_mesh_make(ndim, mesh, 0), .ndim = 1, .shape = {length}, .dtype = TSR_F32};
    for (int m = 0; m < ndim; m++)
        layout.placements[m] = shard(0);
    return layout;
}

static void nine_over_four(void **state)
{
    (void)state;
    oracle_layout layout = vector(9, 1, (int64_t[]){4});
    expect_owned(&layout, 1, "3 4 5");
    expect_owned(&layout, 3, "");
    layout.placements[0].balanced = 1;
    expect_owned(&layout, 0, "0 1 2");
    expect_owned(&layout, 3, "7 8");
    layout.placements[0] = shard(0);
    layout.placements[0].sizes = (const int64_t[]){0, 7, 1, 1};
    expect_owned(&layout, 0, "");
    expect_owned(&layout, 1, "0 1 2 3 4 5 6");
    expect_owned(&layout, 3, "8");
}

static void units_and_blocks(void **state)
{
    (void)state;
    oracle_layout layout = vector(12, 1, (int64_t[]){2});
    layout.placements[0].unit = 4;
    expect_owned(&layout, 0, "0 1 2 3 4 5 6 7");
    layout.placements[0].unit = 0;
    layout.placements[0].blocks = (const int64_t[]){8, 2, 2};
    layout.placements[0].block_count = 3;
    expect_owned(&layout, 0, "0 1 2 3 8 10");
    expect_owned(&layout, 1, "4 5 6 7 9 11");
    layout = vector(10, 1, (int64_t[]){2});
    layout.placements[0].interleave = 3; /* blocks 0-3, 4-7, 8-9 */
    expect_owned(&layout, 0, "0 1 4 5 8");
    layout.placements[0].unit = 3;
    expect_owned(&layout, 0, "0 1 2 4 5 6 8 9");
    expect_owned(&layout, 1, "3 7");
}

static void expect_runs(const oracle_layout *layout, int64_t position, const char *wanted)
{
    int64_t coordinate[TSR_MAX_DIMS], list[64], listed = 0;
    char text[256] = "";
    oracle_runs runs;
    oracle_mesh_coordinate(&layout->mesh, position, coordinate);
    assert_true(oracle_runs_create(layout, coordinate, 0, &runs));
    for (size_t i = 0; i < runs.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d-%d", i > 0 ? " " : "", (int)runs.at[i].begin,
                 (int)runs.at[i].end - 1);
    assert_string_equal(text, wanted);
    assert_int_equal(oracle_owned(layout, coordinate, 0, list), runs.length);
    for (int64_t i = 0; i < layout->shape[0]; i++) {
        const bool here = listed < runs.length && list[listed] == i;
        assert_int_equal(oracle_runs_have(&runs, i), here);
        listed += here;
    }
    oracle_runs_destroy(&runs);
}

static void runs_are_what_is_listed(void **state)
{
    (void)state;
    oracle_layout layout = vector(12, 1, (int64_t[]){2});
    layout.placements[0].blocks = (const int64_t[]){8, 0, 2, 2};
    layout.placements[0].block_count = 4;
    expect_runs(&layout, 0, "0-3 8-8 10-10");
    expect_runs(&layout, 1, "4-7 9-9 11-11");
    layout = vector(30, 2, (int64_t[]){2, 3});
    layout.placements[0].interleave = 3;
    layout.placements[1].unit = 2;
    expect_runs(&layout, 0, "0-4 10-10");
    expect_runs(&layout, 1, "11-14 20-21");
    expect_runs(&layout, 2, "22-24");
    layout = vector(0, 1, (int64_t[]){2});
    expect_runs(&layout, 1, "");
}

static void long_dims_have_runs(void **state)
{
    (void)state;
    const int64_t length = INT64_C(1) << 50;
    oracle_layout layout = vector(length, 2, (int64_t[]){2, 2});
    oracle_runs runs;
    layout.placements[0].sizes = (const int64_t[]){1, length - 1};
    assert_true(oracle_runs_create(&layout, (int64_t[]){1, 1}, 0, &runs));
    assert_int_equal(runs.count, 1);
    assert_int_equal(runs.at[0].begin, 1 + length / 2);
    assert_int_equal(runs.length, length / 2 - 1);
    oracle_runs_destroy(&runs);
}

static void nested_chunk_is_not_flat_chunk(void **state)
{
    (void)state;
    oracle_layout layout = vector(4, 2, (int64_t[]){2, 3});
    const char *const wanted[] = {"0", "1", "", "2", "3", ""};
    for (int64_t p = 0; p < 6; p++)
        expect_owned(&layout, p, wanted[p]);
    layout = vector(8, 2, (int64_t[]){2, 2});
    layout.placements[0].order = 1;
    layout.placements[1].order = 0;
    expect_owned(&layout, 1, "4 5");
    expect_owned(&layout, 2, "2 3");
}

static void expect_conversion(tsr_dtype to, float number, unsigned wanted)
{
    unsigned char in[4], out[2] = {0, 0};
    memcpy(in, &number, sizeof in);
    oracle_convert(TSR_F32, in, to, out);
    assert_int_equal(out[0] | out[1] << 8, wanted);
}

static void small_floats_round_to_nearest_even(void **state)
{
    (void)state;
    expect_conversion(TSR_F16, 1.0f, 0x3c00);
    expect_conversion(TSR_F16, 65519.0f, 0x7bff);
    expect_conversion(TSR_F16, 65520.0f, 0x7c00);
    expect_conversion(TSR_F16, 0x1p-25f, 0x0000);
    expect_conversion(TSR_F16, 0x1.8p-25f, 0x0001);
    expect_conversion(TSR_F16, 0x1.ffep-15f, 0x0400); /* subnormal ties into the smallest normal */
    expect_conversion(TSR_F16, -2.0f, 0xc000);
    expect_conversion(TSR_BF16, 1.00390625f, 0x3f80);
    expect_conversion(TSR_BF16, 1.01171875f, 0x3f82);
    expect_conversion(TSR_F8E4M3, 448.0f, 0x7e);
    expect_conversion(TSR_F8E4M3, 464.0f, 0x7e);
    expect_conversion(TSR_F8E4M3, -465.0f, 0x7f);
    expect_conversion(TSR_F8E4M3, 0x1p-9f, 0x01);
    expect_conversion(TSR_F8E5M2, 61440.0f, 0x7c);
    expect_conversion(TSR_F8E5M2, 57344.0f, 0x7b);
}

static void every_small_float_survives_a_round_trip(void **state)
{
    (void)state;
    const tsr_dtype small[] = {TSR_F16, TSR_BF16, TSR_F8E4M3, TSR_F8E5M2};
    for (int t = 0; t < 4; t++) {
        const unsigned codes = oracle_bytes(small[t]) == 2 ? 65536 : 256;
        for (unsigned code = 0; code < codes; code++) {
            const unsigned char in[2] = {(unsigned char)code, (unsigned char)(code >> 8)};
            unsigned char wide[8], out[2] = {0, 0};
            double number;
            oracle_convert(small[t], in, TSR_F64, wide);
            memcpy(&number, wide, sizeof(number));
            oracle_convert(TSR_F64, wide, small[t], out);
            if (number == number)
                assert_int_equal(out[0] | out[1] << 8, code);
            else
                assert_true((out[0] | out[1] << 8) == (small[t] == TSR_F16      ? 0x7e00
                                                       : small[t] == TSR_BF16   ? 0x7fc0
                                                       : codes == 256 && t == 2 ? 0x7f
                                                                                : 0x7e));
        }
    }
}

static void reductions_have_the_documented_edges(void **state)
{
    (void)state;
    const float zeros[] = {0.0f, -0.0f};
    uint32_t bits;
    oracle_reduce(TSR_F32, TSR_MIN, 1, (const unsigned char *)zeros, 2, (unsigned char *)&bits);
    assert_int_equal(bits, 0x80000000u);
    oracle_reduce(TSR_F32, TSR_MAX, 1, (const unsigned char *)zeros, 2, (unsigned char *)&bits);
    assert_int_equal(bits, 0);
    const uint32_t nans[] = {0xffc12345u, 0x3f800000u};
    oracle_reduce(TSR_F32, TSR_MAX, 1, (const unsigned char *)nans, 2, (unsigned char *)&bits);
    assert_int_equal(bits, 0x7fc00000u);
    const int8_t bytes[] = {100, 100, -3};
    int8_t byte;
    oracle_reduce(TSR_I8, TSR_SUM, 1, (const unsigned char *)bytes, 3, (unsigned char *)&byte);
    assert_int_equal(byte, -59);
    oracle_reduce(TSR_I8, TSR_MIN, 1, (const unsigned char *)bytes, 3, (unsigned char *)&byte);
    assert_int_equal(byte, -3);
    oracle_reduce(TSR_U8, TSR_MAX, 1, (const unsigned char *)bytes, 3, (unsigned char *)&byte);
    assert_int_equal((uint8_t)byte, 253);
    const float average[] = {1.0f, 2.0f, 4.0f};
    float mean;
    oracle_reduce(TSR_F32, TSR_AVG, 3, (const unsigned char *)average, 3, (unsigned char *)&mean);
    assert_true(mean == 7.0f / 3.0f);
    /* 2048 + 1 + 1: 2050 in f32, 2048 if each sum were rounded to f16 */
    const uint16_t halves[] = {0x6800, 0x3c00, 0x3c00};
    uint16_t half;
    oracle_reduce(TSR_F16, TSR_SUM, 1, (const unsigned char *)halves, 3, (unsigned char *)&half);
    assert_int_equal(half, 0x6801);
}

static void integers_are_exact_in_every_dtype(void **state)
{
    (void)state;
    for (int dtype = 1; dtype < TSR_DTYPE_END; dtype++) {
        unsigned char value[16], reduced[16], five[16], wide[8];
        const tsr_dtype d = (tsr_dtype)dtype;
        const bool floats = oracle_has_op(d, TSR_AVG) && oracle_has_op(d, TSR_MIN);
        oracle_integer(d, 1, value);
        oracle_identity(d, TSR_PROD, reduced);
        assert_memory_equal(value, reduced, oracle_bytes(d));
        if (!oracle_has_op(d, TSR_SUM))
            continue;
        oracle_reduction r = {.dtype = d, .op = TSR_SUM, .divisor = 1};
        oracle_integer(d, 7, value);
        oracle_reduction_add(&r, value);
        oracle_integer(d, -2, value);
        oracle_reduction_add(&r, value);
        oracle_reduction_finish(&r, reduced);
        oracle_integer(d, 5, five);
        assert_memory_equal(reduced, five, oracle_bytes(d));
        if (floats) {
            oracle_convert(d, five, TSR_F64, wide);
            assert_memory_equal(wide, &(double){5}, sizeof wide);
        }
    }
}

static void both_parts_of_complex_sums_are_rounded(void **state)
{
    (void)state;
    const float terms[] = {1, -1, 0x1p-24f, -0x1p-24f, 0x1p-24f, -0x1p-24f};
    float sum[2];
    oracle_reduce(TSR_C64, TSR_SUM, 1, (const unsigned char *)terms, 3, (unsigned char *)sum);
    assert_true(sum[0] == 1 && sum[1] == -1);
    oracle_reduction r = {.dtype = TSR_C64, .op = TSR_SUM, .divisor = 1};
    for (int i = 0; i < 6; i += 2)
        oracle_reduction_add(&r, (const unsigned char *)&terms[i]);
    oracle_reduction_finish(&r, (unsigned char *)sum);
    assert_true(sum[0] == 1 && sum[1] == -1);
}

static int64_t bound_of(oracle_layout src, const tsr_placement *to)
{
    oracle_layout dst = src;
    memcpy(dst.placements, to, (size_t)src.mesh.ndim * sizeof *to);
    oracle_move move;
    oracle_move_make(&src, &dst, &move);
    int64_t total;
    oracle_lower_bound(&move, oracle_mesh_count(&src.mesh), &total, NULL);
    return total / 4;
}

static void the_bound_is_the_known_one(void **state)
{
    (void)state;
    const tsr_placement r = {.order = TSR_ORDER_DEFAULT}, p = {.kind = TSR_PARTIAL, .order = TSR_ORDER_DEFAULT};
    oracle_layout layout = {
        .mesh = oracle_mesh_make(1, (int64_t[]){4}, 0), .ndim = 2, .shape = {8, 8}, .dtype = TSR_F32};
    layout.placements[0] = shard(0);
    assert_int_equal(bound_of(layout, (const tsr_placement[]){shard(1)}), 4 * (16 - 4));
    assert_int_equal(bound_of(layout, &r), 4 * 48);
    assert_int_equal(bound_of(layout, &p), 0);
    layout.placements[0] = p;
    assert_int_equal(bound_of(layout, &r), 64 * 2 * 3);
    assert_int_equal(bound_of(layout, (const tsr_placement[]){shard(0)}), 64 * 3);
    layout.placements[0] = r;
    assert_int_equal(bound_of(layout, &p), 0);
    layout.mesh = oracle_mesh_make(2, (int64_t[]){2, 2}, 0);
    layout.placements[0] = p, layout.placements[1] = r;
    assert_int_equal(bound_of(layout, (const tsr_placement[]){r, r}), 64 * (2 + 4 - 2));
    assert_int_equal(bound_of(layout, (const tsr_placement[]){p, shard(1)}), 0);
    assert_int_equal(bound_of(layout, (const tsr_placement[]){r, p}), 64 * (2 + 2 - 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nine_over_four),
        cmocka_unit_test(units_and_blocks),
        cmocka_unit_test(runs_are_what_is_listed),
        cmocka_unit_test(long_dims_have_runs),
        cmocka_unit_test(nested_chunk_is_not_flat_chunk),
        cmocka_unit_test(small_floats_round_to_nearest_even),
        cmocka_unit_test(every_small_float_survives_a_round_trip),
        cmocka_unit_test(reductions_have_the_documented_edges),
        cmocka_unit_test(both_parts_of_complex_sums_are_rounded),
        cmocka_unit_test(integers_are_exact_in_every_dtype),
        cmocka_unit_test(the_bound_is_the_known_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
