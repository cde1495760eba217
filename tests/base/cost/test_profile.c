/* Cost profiles as values and as text. */
#include <tessera/context.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TEXT_BYTES 256

static tsr_cost_profile parse(const char *text)
{
    tsr_cost_profile profile;
    if (tsr_cost_parse(text, &profile) != TSR_OK)
        fail_msg("\"%s\" was refused: %s", text, tsr_status_message());
    return profile;
}

static void assert_profile(const char *text, tsr_cost_profile wanted)
{
    const tsr_cost_profile found = parse(text);
    /* Compared without a tolerance, because only the nearest double is right. */
    if (found.inside.latency != wanted.inside.latency || found.inside.bandwidth != wanted.inside.bandwidth ||
        found.between.latency != wanted.between.latency || found.between.bandwidth != wanted.between.bandwidth)
        fail_msg("\"%s\" reads as %a,%a %a,%a", text, found.inside.latency, found.inside.bandwidth,
                 found.between.latency, found.between.bandwidth);
}

static void assert_prints(tsr_cost_profile profile, const char *wanted)
{
    char text[TEXT_BYTES];
    assert_int_equal(tsr_cost_print(&profile, text, sizeof text), strlen(wanted));
    assert_string_equal(text, wanted);
}

static void the_default_is_half_a_microsecond_inside_and_a_fast_network_between(void **state)
{
    (void)state;
    const tsr_cost_profile usual = tsr_cost_default();
    assert_true(usual.inside.latency == 0.5e-6 && usual.inside.bandwidth == 16e9);
    assert_true(usual.between.latency == 5e-6 && usual.between.bandwidth == 12.5e9);
    assert_prints(usual, "inside=5e-7,1.6e10 between=5e-6,1.25e10");
}

static void what_is_left_out_keeps_the_default(void **state)
{
    (void)state;
    tsr_cost_profile wanted = tsr_cost_default();
    assert_profile("", wanted);
    assert_profile(" \t\r\n# nothing but a comment", wanted);
    wanted.inside = (tsr_link){1e-6, 2e10};
    assert_profile("inside=1e-6,2e10", wanted);
    wanted = tsr_cost_default();
    wanted.between = (tsr_link){1e-5, 2.5e10};
    assert_profile("between=1e-5,2.5e10", wanted);
}

static void entries_stand_in_any_order_with_spaces_newlines_and_comments(void **state)
{
    (void)state;
    const tsr_cost_profile wanted = {{0.25, 3}, {0.5, 100}};
    assert_profile("inside=0.25,3 between=0.5,100", wanted);
    assert_profile("between=0.5,100 inside=0.25,3", wanted);
    assert_profile("# measured\n\n\tinside=25e-2 , 0.3e1# on one node\r\nbetween=0.5e0,100", wanted);
}

static void numbers_are_read_to_the_nearest_double(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"0", 0},
        {"000", 0},
        {"0.000e9999", 0},
        {"007", 7},
        {"1E+3", 1000},
        {"1.0000e-0", 1},
        {"0.1", 0.1},
        {"9007199254740993", 9007199254740992.0},         /* half way: to even */
        {"9007199254740993.0000001", 9007199254740994.0}, /* just past half way */
        {"2.2250738585072011e-308", 2.2250738585072011e-308},
        {"5e-324", 5e-324},
        {"1e-9999", 0},
        {"0.000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001e96", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TEXT_BYTES];
        snprintf(text, sizeof text, "inside=%s,1 between=1e300,1", cases[i].text);
        const double found = parse(text).inside.latency;
        if (found != cases[i].value)
            fail_msg("%s reads as %a instead of %a", cases[i].text, found, cases[i].value);
    }
}

static void a_bad_text_is_refused_at_its_character(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"within=1,1", "character 1: expected inside=LATENCY,BANDWIDTH or between=LATENCY,BANDWIDTH, or step=, piece=, "
                       "meeting=, copy@, "
                       "keep@, sum@, call=, pass=, multiply@ or attend@, found \"w\""},
        {"inside", "character 1: expected inside="},
        {"inside =1,1", "character 1: expected inside="},
        {"inside=", "character 8: expected a number of seconds, as 5e-7, found the end"},
        {"inside= 1,1", "character 8: expected a number of seconds"},
        {"inside=-1,1", "character 8: expected a number of seconds, as 5e-7, found \"-\""},
        {"inside=+1,1", "character 8:"},
        {"inside=nan,1", "character 8:"},
        {"inside=inf,1", "character 8:"},
        {"inside=.5,1", "character 8:"},
        {"inside=0x1p3,1", "character 9: expected \",\" and a bandwidth, found \"x\""},
        {"inside=1.,1", "character 10: expected a digit, found \",\""},
        {"inside=1e,1", "character 10: expected an exponent from 0 to 9999"},
        {"inside=1e-,1", "character 11: expected an exponent"},
        {"inside=1e10000,1", "character 10: expected an exponent"},
        {"inside=1e999,1", "character 8: this number is greater than any double"},
        {"inside=1", "character 9: expected \",\" and a bandwidth, found the end"},
        {"inside=1;1", "character 9: expected \",\""},
        {"inside=1,", "character 10: expected a number of bytes a second, as 1.6e10, found the end"},
        {"inside=1,-5", "character 10: expected a number of bytes"},
        {"inside=1,0", "character 10: a bandwidth is more than 0"},
        {"inside=1,1e-400", "character 10: a bandwidth is more than 0"},
        {"inside=1,1e400", "character 10: this number is greater than any double"},
        {"inside=1,2,3", "character 11: expected a space or the end, found \",\""},
        {"inside=1,2between=1,2", "character 11: expected a space or the end, found \"b\""},
        {"inside=0,1 inside=0,1", "character 12: this kind of link stands here twice"},
        {"between=1,1 inside=0,1\nbetween=1,1",
         "line 2 \"between=1,1\", character 1: this kind of link stands here twice"},
        {"# profile\n\ninside=1,\nbetween=1,1",
         "cost profile, line 3 \"inside=1,\", character 10: expected a number of bytes a second, as "
         "1.6e10, found a line's end"},
        {"inside=00000000000000000000000000000000000000000000000000000000000000001,"
         "12345678901234567890123456789012345678901234567890123456789012345",
         "character 138: a number has at most 64 digits"},
        {"inside=0.12345678901234567890123456789012345678901234567890123456789012345,1",
         "character 74: a number has at most 64 digits"},
        {"inside=1e-4,1e9", "inside.latency is 1e-4, more than between.latency, 5e-6"},
        {"between=1e-7,1e9", "inside.latency is 5e-7, more than between.latency, 1e-7"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_cost_profile profile = {{1, 2}, {3, 4}};
        const tsr_cost_profile before = profile;
        if (tsr_cost_parse(cases[i].text, &profile) != TSR_ERROR_ARGUMENT)
            fail_msg("\"%s\" was not refused", cases[i].text);
        assert_memory_equal(&profile, &before, sizeof profile);
        if (!strstr(tsr_status_message(), cases[i].says))
            fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), cases[i].says);
    }
    tsr_cost_profile profile;
    assert_int_equal(tsr_cost_parse(NULL, &profile), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_cost_parse("", NULL), TSR_ERROR_ARGUMENT);
}

/* Any finite number from 0 up, by its bits. */
static double some_number(uint64_t *state)
{
    for (;;) {
        double value;
        *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        const uint64_t bits = (*state ^ *state >> 29) & INT64_MAX;
        memcpy(&value, &bits, sizeof value);
        if (isfinite(value) && value > 0)
            return value;
    }
}

static void assert_text_comes_back(tsr_cost_profile profile)
{
    char text[TEXT_BYTES], again[TEXT_BYTES];
    assert_in_range(tsr_cost_print(&profile, text, sizeof text), 1, sizeof text - 1);
    assert_profile(text, profile);
    const tsr_cost_profile read = parse(text);
    tsr_cost_print(&read, again, sizeof again);
    assert_string_equal(again, text);
}

static void printed_text_reads_back_as_the_same_numbers(void **state)
{
    (void)state;
    static const double edges[] = {DBL_MIN, DBL_MAX, 5e-324, 1,         9007199254740993.0, 0.1,
                                   1.0 / 3, 1e22,    1e23,   0x1p-1074, 123456789.0};
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++)
        assert_text_comes_back((tsr_cost_profile){{0, edges[i]}, {edges[i], edges[i]}});
    for (int i = 0; i < 2000; i++) {
        const double a = some_number(&seed), b = some_number(&seed);
        assert_text_comes_back((tsr_cost_profile){{fmin(a, b), some_number(&seed)}, {fmax(a, b), some_number(&seed)}});
    }
}

static void numbers_are_printed_with_the_fewest_digits(void **state)
{
    (void)state;
    assert_prints((tsr_cost_profile){{0, 1}, {0.1, 10}}, "inside=0,1 between=1e-1,1e1");
    assert_prints((tsr_cost_profile){{5e-324, DBL_MAX}, {1.0 / 3, 1e23}},
                  "inside=5e-324,1.7976931348623157e308 between=3.333333333333333e-1,1e23");
    assert_prints((tsr_cost_profile){{-1.5, INFINITY}, {NAN, 1e100}}, "inside=-1.5,inf between=nan,1e100");
}

static void text_that_does_not_fit_is_cut_and_counted(void **state)
{
    (void)state;
    const tsr_cost_profile profile = tsr_cost_default();
    const char whole[] = "inside=5e-7,1.6e10 between=5e-6,1.25e10";
    assert_int_equal(tsr_cost_print(&profile, NULL, 0), strlen(whole));
    for (size_t capacity = 1; capacity <= sizeof whole; capacity++) {
        char text[sizeof whole + 1];
        memset(text, '#', sizeof text);
        assert_int_equal(tsr_cost_print(&profile, text, capacity), strlen(whole));
        assert_memory_equal(text, whole, capacity - 1);
        assert_int_equal(text[capacity - 1], '\0');
        assert_int_equal(text[capacity], '#');
    }
}

static void a_locale_with_a_decimal_comma_changes_nothing(void **state)
{
    (void)state;
    char formatted[8];
    if (!setlocale(LC_ALL, "de_DE.utf8")) {
        print_message("skipped: there is no locale de_DE.utf8\n");
        skip();
    }
    snprintf(formatted, sizeof formatted, "%.1f", 0.5);
    assert_string_equal(formatted, "0,5");
    assert_profile("inside=0.25,3.5 between=0.5,1e2", (tsr_cost_profile){{0.25, 3.5}, {0.5, 100}});
    printed_text_reads_back_as_the_same_numbers(NULL);
    assert_prints((tsr_cost_profile){{0.125, 1.5}, {0.5, 2.5e9}}, "inside=1.25e-1,1.5 between=5e-1,2.5e9");
    setlocale(LC_ALL, "C");
}

static void a_context_refuses_profiles_that_are_not_as_they_must_be(void **state)
{
    (void)state;
    static const struct {
        tsr_cost_profile profile;
        const char *says;
    } cases[] = {
        {{{-1, 1}, {1, 1}}, "inside.latency is -1"},
        {{{NAN, 1}, {1, 1}}, "inside.latency is nan"},
        {{{0, 0}, {1, 1}}, "inside.bandwidth is 0"},
        {{{0, -5}, {1, 1}}, "inside.bandwidth is -5"},
        {{{0, INFINITY}, {1, 1}}, "inside.bandwidth is inf"},
        {{{0, 1}, {INFINITY, 1}}, "between.latency is inf"},
        {{{0, 1}, {1, NAN}}, "between.bandwidth is nan"},
        {{{2, 1}, {1, 1}}, "inside.latency is 2, more than between.latency, 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
        tsr_context *context = NULL;
        options.profile = &cases[i].profile;
        assert_int_equal(tsr_context_create(&options, &context), TSR_ERROR_ARGUMENT);
        assert_null(context);
        if (!strstr(tsr_status_message(), "options.profile") || !strstr(tsr_status_message(), cases[i].says))
            fail_msg("\"%s\" does not say options.profile and \"%s\"", tsr_status_message(), cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_is_half_a_microsecond_inside_and_a_fast_network_between),
        cmocka_unit_test(what_is_left_out_keeps_the_default),
        cmocka_unit_test(entries_stand_in_any_order_with_spaces_newlines_and_comments),
        cmocka_unit_test(numbers_are_read_to_the_nearest_double),
        cmocka_unit_test(a_bad_text_is_refused_at_its_character),
        cmocka_unit_test(printed_text_reads_back_as_the_same_numbers),
        cmocka_unit_test(numbers_are_printed_with_the_fewest_digits),
        cmocka_unit_test(text_that_does_not_fit_is_cut_and_counted),
        cmocka_unit_test(a_locale_with_a_decimal_comma_changes_nothing),
        cmocka_unit_test(a_context_refuses_profiles_that_are_not_as_they_must_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
