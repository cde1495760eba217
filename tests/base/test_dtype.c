#include <tessera/dtype.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* What the library says of its dtypes, written once more by hand. */
static const struct {
    const char *name;
    tsr_dtype dtype;
    size_t bytes;
    tsr_dtype_class kind;
    const char *ops;
    const char *npy;
    const char *safetensors;
} expected[] = {
    {"f64", TSR_F64, 8, TSR_CLASS_FLOAT, "sum avg min max prod", "<f8", "F64"},
    {"f32", TSR_F32, 4, TSR_CLASS_FLOAT, "sum avg min max prod", "<f4", "F32"},
    {"f16", TSR_F16, 2, TSR_CLASS_FLOAT, "sum avg min max prod", "<f2", "F16"},
    {"bf16", TSR_BF16, 2, TSR_CLASS_FLOAT, "sum avg min max prod", "<u2", "BF16"},
    {"f8e4m3", TSR_F8E4M3, 1, TSR_CLASS_FLOAT, "sum avg min max prod", "|u1", "F8_E4M3"},
    {"f8e5m2", TSR_F8E5M2, 1, TSR_CLASS_FLOAT, "sum avg min max prod", "|u1", "F8_E5M2"},
    {"i64", TSR_I64, 8, TSR_CLASS_SIGNED, "sum min max prod", "<i8", "I64"},
    {"i32", TSR_I32, 4, TSR_CLASS_SIGNED, "sum min max prod", "<i4", "I32"},
    {"i16", TSR_I16, 2, TSR_CLASS_SIGNED, "sum min max prod", "<i2", "I16"},
    {"i8", TSR_I8, 1, TSR_CLASS_SIGNED, "sum min max prod", "|i1", "I8"},
    {"u64", TSR_U64, 8, TSR_CLASS_UNSIGNED, "sum min max prod", "<u8", "U64"},
    {"u32", TSR_U32, 4, TSR_CLASS_UNSIGNED, "sum min max prod", "<u4", "U32"},
    {"u16", TSR_U16, 2, TSR_CLASS_UNSIGNED, "sum min max prod", "<u2", "U16"},
    {"u8", TSR_U8, 1, TSR_CLASS_UNSIGNED, "sum min max prod", "|u1", "U8"},
    {"bool", TSR_BOOL, 1, TSR_CLASS_BOOL, "min max", "|b1", "BOOL"},
    {"c64", TSR_C64, 8, TSR_CLASS_COMPLEX, "sum avg prod", "<c8", "C64"},
    {"c128", TSR_C128, 16, TSR_CLASS_COMPLEX, "sum avg prod", "<c16", NULL},
};

static void the_table_has_exactly_the_dtypes_of_the_design(void **state)
{
    (void)state;
    assert_int_equal(sizeof expected / sizeof *expected, TSR_DTYPE_END - 1);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const tsr_dtype_info *info = tsr_dtype_get(expected[i].dtype);
        assert_non_null(info);
        assert_int_equal(info->dtype, expected[i].dtype);
        assert_string_equal(info->name, expected[i].name);
        assert_int_equal(info->bytes, expected[i].bytes);
        assert_int_equal(info->kind, expected[i].kind);
        assert_string_equal(info->npy, expected[i].npy);
        assert_int_equal(!info->safetensors, !expected[i].safetensors);
        if (info->safetensors)
            assert_string_equal(info->safetensors, expected[i].safetensors);
    }
}

static void every_row_allows_the_reductions_of_the_design(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        unsigned ops = 0;
        for (tsr_reduce_op op = TSR_SUM; op < TSR_REDUCE_OP_END; op++)
            if (strstr(expected[i].ops, tsr_reduce_op_name(op)))
                ops |= 1u << op;
        if (tsr_dtype_get(expected[i].dtype)->reduce_ops != ops)
            fail_msg("%s: reduce_ops is %x, expected %x", expected[i].name,
                     tsr_dtype_get(expected[i].dtype)->reduce_ops, ops);
    }
}

static void names_and_dtypes_map_to_each_other(void **state)
{
    (void)state;
    for (int i = TSR_DTYPE_NONE + 1; i < TSR_DTYPE_END; i++) {
        tsr_dtype parsed = TSR_DTYPE_NONE;
        assert_int_equal(tsr_dtype_parse(tsr_dtype_name((tsr_dtype)i), &parsed), TSR_OK);
        assert_int_equal(parsed, i);
        assert_int_equal(tsr_dtype_bytes(parsed), tsr_dtype_get(parsed)->bytes);
    }
}

static void what_is_no_dtype_has_no_row(void **state)
{
    (void)state;
    const int outside[] = {TSR_DTYPE_NONE, TSR_DTYPE_END, TSR_DTYPE_END + 1, -1, INT32_MAX};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        assert_null(tsr_dtype_get((tsr_dtype)outside[i]));
        assert_int_equal(tsr_dtype_bytes((tsr_dtype)outside[i]), 0);
        assert_string_equal(tsr_dtype_name((tsr_dtype)outside[i]), "none");
    }
}

static void an_unknown_name_is_refused_with_those_that_are_known(void **state)
{
    (void)state;
    const char *const unknown[] = {"", "F32", "f33", "f32 ", "float", "none"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        tsr_dtype parsed = TSR_U8;
        assert_int_equal(tsr_dtype_parse(unknown[i], &parsed), TSR_ERROR_ARGUMENT);
        assert_int_equal(parsed, TSR_U8);
        assert_non_null(strstr(tsr_status_message(), unknown[i]));
        assert_non_null(
            strstr(tsr_status_message(), "f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u64 u32 u16 u8 bool c64 c128"));
    }
    tsr_dtype parsed;
    assert_int_equal(tsr_dtype_parse(NULL, &parsed), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_dtype_parse("f32", NULL), TSR_ERROR_ARGUMENT);
}

static void reductions_outside_the_enumeration_have_no_name(void **state)
{
    (void)state;
    assert_string_equal(tsr_reduce_op_name(TSR_REDUCE_OP_END), "none");
    assert_string_equal(tsr_reduce_op_name((tsr_reduce_op)-1), "none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_has_exactly_the_dtypes_of_the_design),
        cmocka_unit_test(every_row_allows_the_reductions_of_the_design),
        cmocka_unit_test(names_and_dtypes_map_to_each_other),
        cmocka_unit_test(what_is_no_dtype_has_no_row),
        cmocka_unit_test(an_unknown_name_is_refused_with_those_that_are_known),
        cmocka_unit_test(reductions_outside_the_enumeration_have_no_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
