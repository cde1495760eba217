/* Tokens as text. */
#include "text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_utf8(const char *bytes, const char *wanted)
{
    int64_t ids[16] = {0};
    char text[49];
    const size_t count = strlen(bytes);
    for (size_t i = 0; i < count; i++)
        ids[i] = (unsigned char)bytes[i];
    text[llama_tokens_to_utf8(ids, (int64_t)count, text)] = '\0';
    assert_string_equal(text, wanted);
}

#define BAD "\xef\xbf\xbd"

static void utf8_is_kept(void **state)
{
    (void)state;
    expect_utf8("", "");
    expect_utf8("a\n\x7f", "a\n\x7f");
    expect_utf8("\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x99\x82");
}

/* The text that Python's bytes.decode("utf-8", "replace") gives. */
static void other_bytes_become_one_mark_for_each_maximal_part(void **state)
{
    (void)state;
    expect_utf8("\x80z", BAD "z");
    expect_utf8("\xff\xfe", BAD BAD);
    expect_utf8("\xc0\xaf", BAD BAD);
    expect_utf8("\xe2\x82", BAD);
    expect_utf8("\xe2\x82z", BAD "z");
    expect_utf8("\xf0\x9f\x99", BAD);
    expect_utf8("\xf0\x80\x80", BAD BAD BAD);
    expect_utf8("\xed\xa0\x80", BAD BAD BAD);
    expect_utf8("\xe0\x80", BAD BAD);
    expect_utf8("\xf4\x90\x80\x80", BAD BAD BAD BAD);
    expect_utf8("\xc3\xc3\xa9", BAD "\xc3\xa9");
}

static void lists_of_numbers_are_read(void **state)
{
    (void)state;
    llama_tokens tokens;
    assert_int_equal(llama_tokens_parse(" 1, 22 ,333", &tokens), TSR_OK);
    assert_int_equal(tokens.count, 3);
    assert_true(tokens.ids[0] == 1 && tokens.ids[1] == 22 && tokens.ids[2] == 333);
    free(tokens.ids);
}

static void lists_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const lists[] = {
        "", ",", "1,", ",1", "1,,2", "1 2", "a", "1,-2", "1.5", "0x10", "99999999999999999999"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        llama_tokens tokens = {NULL, 7};
        print_message("%s\n", lists[i]);
        assert_int_equal(llama_tokens_parse(lists[i], &tokens), TSR_ERROR_ARGUMENT);
        assert_true(!tokens.ids && tokens.count == 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_kept),
        cmocka_unit_test(other_bytes_become_one_mark_for_each_maximal_part),
        cmocka_unit_test(lists_of_numbers_are_read),
        cmocka_unit_test(lists_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
