/* Conversions between floating types: every code of the narrow types, every value at which rounding
 * changes direction, and random bits. */
#include "device_parts.h"
#include "reference.h"
#include "variants.h"

#include <math.h>

static const tsr_dtype floats[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16, TSR_F8E4M3, TSR_F8E5M2};
#define FLOATS (sizeof floats / sizeof floats[0])

/* Converts `count` elements, from and to addresses that are not aligned, on every variant, and
 * compares each with the reference. */
static void check_conversion(tsr_dtype dst, tsr_dtype src, const void *values, int64_t count)
{
    const size_t src_bytes = tsr_dtype_bytes(src), dst_bytes = tsr_dtype_bytes(dst);
    unsigned char *const from = malloc((size_t)count * src_bytes + 1), *const to =
                                                                           malloc((size_t)count * dst_bytes + 2);
    variant all[3];
    assert_true(from && to);
    memcpy(from + 1, values, (size_t)count * src_bytes);
    for (int v = list_variants(all) - 1; v >= 0; v--) {
        memset(to, 0xa5, (size_t)count * dst_bytes + 2);
        assert_int_equal(all[v].table->convert(NULL, 0, to + 1, dst, from + 1, src, count, NULL), TSR_OK);
        for (int64_t i = 0; i < count; i++) {
            unsigned char expected[8];
            const unsigned char *const got = to + 1 + (size_t)i * dst_bytes, *const given =
                                                                                 from + 1 + (size_t)i * src_bytes;
            reference_store(dst, reference_load(src, given), expected);
            if (memcmp(got, expected, dst_bytes) != 0)
                fail_msg("%s: %s %a to %s gave %a, not %a", all[v].name, tsr_dtype_name(src),
                         reference_load(src, given), tsr_dtype_name(dst), reference_load(dst, got),
                         reference_load(dst, expected));
        }
        assert_int_equal(to[0], 0xa5);
        assert_int_equal(to[(size_t)count * dst_bytes + 1], 0xa5);
    }
    free(from);
    free(to);
}

static void check_to_all(tsr_dtype src, const void *values, int64_t count)
{
    for (size_t i = 0; i < FLOATS; i++)
        if (floats[i] != src)
            check_conversion(floats[i], src, values, count);
}

static void every_code_of_a_narrow_type_converts_to_every_other(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        const tsr_dtype src = reference_narrow[t];
        const uint32_t codes = reference_codes(src);
        uint16_t *const halves = malloc(codes * sizeof *halves);
        uint8_t *const bytes = malloc(codes);
        assert_true(halves && bytes);
        for (uint32_t c = 0; c < codes; c++) {
            halves[c] = (uint16_t)c;
            bytes[c] = (uint8_t)c;
        }
        check_to_all(src, tsr_dtype_bytes(src) == 2 ? (const void *)halves : bytes, codes);
        free(halves);
        free(bytes);
    }
}

static int64_t put_single(float *values, int64_t count, double value)
{
    const float middle = (float)value;
    values[count++] = middle;
    values[count++] = nextafterf(middle, INFINITY);
    values[count++] = nextafterf(middle, -INFINITY);
    return count;
}

static int64_t put_double(double *values, int64_t count, double value)
{
    values[count++] = value;
    values[count++] = nextafter(value, (double)INFINITY);
    values[count++] = nextafter(value, -(double)INFINITY);
    return count;
}

/* Between two neighbours there is a value at which rounding changes direction. Converts this value,
 * the values next to it in the source type, and the neighbours, with both signs; also beyond the
 * largest number. */
static void rounding_turns_exactly_in_the_middle_of_neighbours(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        const tsr_dtype dst = reference_narrow[t];
        const uint32_t finite = reference_finite(dst);
        float *const singles = malloc((size_t)finite * 12 * sizeof *singles);
        double *const doubles = malloc((size_t)finite * 12 * sizeof *doubles);
        int64_t single_count = 0, double_count = 0;
        assert_true(singles && doubles);
        for (uint32_t c = 0; c < finite; c++) {
            const double low = reference_decode(dst, c);
            const double high = c + 1 < finite ? reference_decode(dst, c + 1) : 2 * low - reference_decode(dst, c - 1);
            const double places[] = {low, -low, low / 2 + high / 2, -low / 2 - high / 2};
            for (int p = 0; p < 4; p++) {
                single_count = put_single(singles, single_count, places[p]);
                double_count = put_double(doubles, double_count, places[p]);
            }
        }
        check_conversion(dst, TSR_F32, singles, single_count);
        check_conversion(dst, TSR_F64, doubles, double_count);
        free(singles);
        free(doubles);
    }
}

static void random_bits_convert_like_the_reference(void **state)
{
    enum { COUNT = 300001 };
    uint64_t seed = seed_of(3);
    double *const values = malloc(COUNT * sizeof *values);
    (void)state;
    assert_non_null(values);
    draw_bytes(&seed, values, COUNT * sizeof *values);
    check_to_all(TSR_F64, values, COUNT);
    check_to_all(TSR_F32, values, COUNT);
    /* Most random doubles are out of the range of every narrow type; these are within it. */
    for (int i = 0; i < COUNT; i++)
        values[i] = ldexp((double)(int64_t)draw(&seed), (int)draw_between(&seed, -90, -44));
    check_to_all(TSR_F64, values, COUNT);
    free(values);
}

static void special_values_convert_as_the_design_says(void **state)
{
    static const double specials[] = {0.0,    -0.0,    (double)INFINITY, -(double)INFINITY, (double)NAN, -(double)NAN,
                                      5e-324, -5e-324, 1.7e308};
    static const struct {
        tsr_dtype dtype;
        uint32_t codes[7]; /* of the first six values, then of 1e6 */
    } known[] = {
        {TSR_F16, {0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0x7e00, 0x7c00}},
        {TSR_BF16, {0, 0x8000, 0x7f80, 0xff80, 0x7fc0, 0x7fc0, 0x4974}},
        {TSR_F8E4M3, {0, 0x80, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}},
        {TSR_F8E5M2, {0, 0x80, 0x7c, 0xfc, 0x7e, 0x7e, 0x7c}},
    };
    variant all[3];
    (void)state;
    check_to_all(TSR_F64, specials, sizeof specials / sizeof specials[0]);
    for (int v = list_variants(all) - 1; v >= 0; v--)
        for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
            for (int i = 0; i < 7; i++) {
                const double value = i < 6 ? specials[i] : 1e6;
                uint16_t half = 0;
                assert_int_equal(all[v].table->convert(NULL, 0, &half, known[k].dtype, &value, TSR_F64, 1, NULL),
                                 TSR_OK);
                assert_int_equal(half, known[k].codes[i]);
            }
}

static void equal_types_keep_every_bit(void **state)
{
    variant all[3];
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--) {
        const uint32_t from[2] = {0xff800001, 0x7fc12345};
        uint32_t to[2];
        assert_int_equal(all[v].table->convert(NULL, 0, to, TSR_F32, from, TSR_F32, 2, NULL), TSR_OK);
        assert_memory_equal(to, from, sizeof from);
    }
}

static void other_types_and_negative_counts_are_refused(void **state)
{
    variant all[3];
    unsigned char from[16] = {0}, to[16];
    (void)state;
    for (int v = list_variants(all) - 1; v >= 0; v--) {
        for (int d = TSR_DTYPE_NONE; d <= TSR_DTYPE_END; d++) {
            const tsr_dtype_info *const info = tsr_dtype_get((tsr_dtype)d);
            const tsr_status status = all[v].table->convert(NULL, 0, to, TSR_F32, from, (tsr_dtype)d, 1, NULL);
            assert_int_equal(status, info && info->kind == TSR_CLASS_FLOAT ? TSR_OK : TSR_ERROR_UNSUPPORTED);
            assert_int_equal(all[v].table->convert(NULL, 0, to, (tsr_dtype)d, from, TSR_F32, 1, NULL), status);
        }
        assert_int_equal(all[v].table->convert(NULL, 0, to, TSR_F32, from, TSR_F64, -1, NULL), TSR_ERROR_ARGUMENT);
        assert_int_equal(all[v].table->convert(NULL, 0, NULL, TSR_F32, NULL, TSR_F64, 0, NULL), TSR_OK);
    }
}

int device_convert(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_of_a_narrow_type_converts_to_every_other),
        cmocka_unit_test(rounding_turns_exactly_in_the_middle_of_neighbours),
        cmocka_unit_test(random_bits_convert_like_the_reference),
        cmocka_unit_test(special_values_convert_as_the_design_says),
        cmocka_unit_test(equal_types_keep_every_bit),
        cmocka_unit_test(other_types_and_negative_counts_are_refused),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
