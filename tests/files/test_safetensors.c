/* Which headers of safetensors files are accepted; everything that they say is checked. */
#include <tessera/safetensors.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A file in memory: the prefix for `header_bytes`, the header's text, `data_bytes` zeros. */
static tsr_status parse_sized(const char *header, uint64_t header_bytes, size_t data_bytes, tsr_safetensors **out)
{
    const size_t length = strlen(header), bytes = 8 + length + data_bytes;
    unsigned char *const file = calloc(1, bytes);
    assert_non_null(file);
    for (int i = 0; i < 8; i++)
        file[i] = (unsigned char)(header_bytes >> 8 * i);
    memcpy(file + 8, header, length);
    const tsr_status status = tsr_safetensors_parse("x.safetensors", file, bytes, out);
    free(file);
    return status;
}

static void expect_refused(const char *header, size_t data_bytes, const char *said)
{
    tsr_safetensors *file = NULL;
    print_message("%s\n", header);
    assert_int_equal(parse_sized(header, strlen(header), data_bytes, &file), TSR_ERROR_ARGUMENT);
    assert_null(file);
    if (!strstr(tsr_status_message(), said))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), said);
}

#define ENTRY(name, dtype, shape, begin, end)                                                                          \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

static void tensors_are_found_by_name(void **state)
{
    (void)state;
    tsr_safetensors *file;
    const char *const header = "{\"__metadata__\":{\"format\":\"pt\"}," ENTRY("b", "BF16", "[2,3]", 8, 20) "," ENTRY(
        "a", "F32", "[2]", 0, 8) "," ENTRY("empty", "F16", "[0,4]", 20, 20) "," ENTRY("scalar", "U8", "[]", 20,
                                                                                      21) "}  ";
    assert_int_equal(parse_sized(header, strlen(header), 21, &file), TSR_OK);
    const tsr_safetensors_entry *const b = tsr_safetensors_find(file, "b");
    assert_non_null(b);
    assert_int_equal(b->dtype, TSR_BF16);
    assert_int_equal(b->ndim, 2);
    assert_int_equal(b->shape[1], 3);
    assert_int_equal(b->offset, 8 + strlen(header) + 8);
    assert_int_equal(b->bytes, 12);
    assert_int_equal(tsr_safetensors_find(file, "scalar")->bytes, 1);
    assert_int_equal(tsr_safetensors_find(file, "empty")->bytes, 0);
    assert_null(tsr_safetensors_find(file, "c"));
    assert_null(tsr_safetensors_find(file, "__metadata__"));
    tsr_safetensors_destroy(file);
}

/* Every way to write a name, and numbers beside those that count, are taken as they are. */
static void escapes_and_other_numbers_are_read(void **state)
{
    (void)state;
    tsr_safetensors *file;
    const char *const header =
        "{\"__metadata__\":{\"k\\u00e9\\ny\":\"\\ud83d\\ude00\\/\\\\\\u0041\"},"
        "\"\\u20ac \\\"\\b\\t\":{\"dtype\":\"U8\",\"shape\":[-0,9223372036854775807,0],\"data_offsets\":[-0,0],"
        "\"more\":[1.5,-0,1e3,-12.25E-2,true,null,-9223372036854775808,{\"\":[]}]}}";
    assert_int_equal(parse_sized(header, strlen(header), 0, &file), TSR_OK);
    assert_non_null(tsr_safetensors_find(file, "\xe2\x82\xac \"\b\t"));
    assert_string_equal(tsr_safetensors_metadata(file, "k\xc3\xa9\ny"), "\xf0\x9f\x98\x80/\\A");
    tsr_safetensors_destroy(file);
}

static void a_file_without_tensors_is_fine(void **state)
{
    (void)state;
    tsr_safetensors *file;
    assert_int_equal(parse_sized("{}", 2, 0, &file), TSR_OK);
    assert_null(tsr_safetensors_find(file, "a"));
    tsr_safetensors_destroy(file);
}

static void files_shorter_than_their_header_are_refused(void **state)
{
    (void)state;
    tsr_safetensors *file = NULL;
    assert_int_equal(tsr_safetensors_parse("x", "\2\0\0\0\0\0\0", 7, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_safetensors_parse("x", NULL, 0, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(parse_sized("{}", 3, 0, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(parse_sized("{}", UINT64_MAX, 0, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(parse_sized("{}", (uint64_t)1 << 63, 0, &file), TSR_ERROR_ARGUMENT);
    assert_int_equal(parse_sized("{}", 0, 0, &file), TSR_ERROR_ARGUMENT);
    assert_null(file);
}

static void headers_beyond_the_limit_are_refused_unread(void **state)
{
    (void)state;
    tsr_safetensors *file = NULL;
    assert_int_equal(parse_sized("{}", 100000001, 100000001, &file), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "100000000"));
}

static void text_that_is_no_header_is_refused(void **state)
{
    (void)state;
    expect_refused("[]", 0, "object");
    expect_refused("{\"a\":1}", 0, "object");
    expect_refused("{\"a\":", 0, "header");
    expect_refused("{} x", 0, "header");
    expect_refused("{" ENTRY("a", "F32", "[1]", 0, 4) "," ENTRY("a", "F32", "[1]", 0, 4) "}", 4, "duplicate");
}

static void fields_that_lie_are_refused(void **state)
{
    (void)state;
    expect_refused("{" ENTRY("a", "F33", "[1]", 0, 4) "}", 4, "F33");
    expect_refused("{" ENTRY("a", "F32", "1", 0, 4) "}", 4, "shape");
    expect_refused("{" ENTRY("a", "F32", "[-1]", 0, 4) "}", 4, "shape");
    expect_refused("{" ENTRY("a", "F32", "[1.0]", 0, 4) "}", 4, "shape");
    expect_refused("{" ENTRY("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4) "}", 4, "at most 8");
    expect_refused("{" ENTRY("a", "F32", "[4611686018427387904,4]", 0, 4) "}", 4, "overflows");
    expect_refused("{" ENTRY("a", "F32", "[2]", 0, 4) "}", 4, "8 by its shape");
    expect_refused("{" ENTRY("a", "F32", "[1]", 0, 8) "}", 8, "4 by its shape");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}}", 4, "two whole numbers");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "two whole numbers");
    expect_refused("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,\"4\"]}}", 4, "two whole numbers");
}

static void offsets_outside_the_file_are_refused(void **state)
{
    (void)state;
    expect_refused("{" ENTRY("a", "F32", "[2]", 0, 8) "}", 4, "the file holds 4 bytes");
    expect_refused("{" ENTRY("a", "F32", "[1]", -4, 0) "}", 4, "data_offsets");
    expect_refused("{" ENTRY("a", "F32", "[1]", 8, 4) "}", 8, "data_offsets");
    expect_refused("{" ENTRY("a", "U8", "[0]", 9223372036854775807, 9223372036854775807) "}", 8, "data_offsets");
}

static void tensors_that_overlap_or_leave_gaps_are_refused(void **state)
{
    (void)state;
    expect_refused("{" ENTRY("a", "F32", "[1]", 0, 4) "," ENTRY("b", "F32", "[1]", 2, 6) "}", 6, "overlap");
    expect_refused("{" ENTRY("a", "F32", "[1]", 0, 4) "," ENTRY("b", "F32", "[1]", 0, 4) "}", 4, "overlap");
    expect_refused("{" ENTRY("a", "F32", "[1]", 0, 4) "," ENTRY("b", "F32", "[1]", 6, 10) "}", 10, "gap");
    expect_refused("{" ENTRY("a", "F32", "[1]", 0, 4) "}", 6, "the last 2 bytes");
}

static void files_that_are_none_are_refused(void **state)
{
    (void)state;
    tsr_safetensors *file = NULL;
    assert_int_equal(tsr_safetensors_open("/nonexistent/model.safetensors", &file), TSR_ERROR_IO);
    assert_int_equal(tsr_safetensors_open("/", &file), TSR_ERROR_IO);
    assert_null(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_found_by_name),
        cmocka_unit_test(escapes_and_other_numbers_are_read),
        cmocka_unit_test(a_file_without_tensors_is_fine),
        cmocka_unit_test(files_shorter_than_their_header_are_refused),
        cmocka_unit_test(headers_beyond_the_limit_are_refused_unread),
        cmocka_unit_test(text_that_is_no_header_is_refused),
        cmocka_unit_test(fields_that_lie_are_refused),
        cmocka_unit_test(offsets_outside_the_file_are_refused),
        cmocka_unit_test(tensors_that_overlap_or_leave_gaps_are_refused),
        cmocka_unit_test(files_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
