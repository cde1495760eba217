#include "base/hash.h"
#include "base/options.h"
#include "base/text/scan.h"
#include "base/text/text.h"

#include <tessera/sys/status.h>
#include <tessera/version.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = TSR_OK; i <= TSR_ERROR_INTERNAL; i++)
        for (int j = TSR_OK; j < i; j++)
            assert_string_not_equal(tsr_status_name((tsr_status)i), tsr_status_name((tsr_status)j));
    assert_string_equal(tsr_status_name(TSR_OK), "ok");
    assert_string_equal(tsr_status_name(TSR_ERROR_IO), "io");
    assert_string_equal(tsr_status_name((tsr_status)(TSR_ERROR_INTERNAL + 1)), "unknown");
    assert_string_equal(tsr_status_name((tsr_status)-1), "unknown");
}

static void a_sentence_may_quote_the_one_before(void **state)
{
    (void)state;
    assert_int_equal(tsr_status_set(TSR_ERROR_IO, "no file"), TSR_ERROR_IO);
    assert_int_equal(tsr_status_set(TSR_ERROR_PEER, "rank %d: %s", 3, tsr_status_message()), TSR_ERROR_PEER);
    assert_string_equal(tsr_status_message(), "rank 3: no file");
}

static void a_kept_sentence_is_told_again_after_others(void **state)
{
    (void)state;
    tsr_kept_sentence kept;
    tsr_status_set(TSR_ERROR_IO, "the cause, 100 %%s");
    tsr_status_keep(&kept);
    tsr_status_set(TSR_ERROR_DEVICE, "what giving back said, which is longer than the cause");
    assert_int_equal(tsr_status_restore(&kept, TSR_ERROR_IO), TSR_ERROR_IO);
    assert_string_equal(tsr_status_message(), "the cause, 100 %s");
}

static void a_kept_sentence_knows_its_status(void **state)
{
    (void)state;
    tsr_kept_sentence kept, returned;
    tsr_status_set(TSR_ERROR_IO, "no file");
    tsr_status_keep(&kept);
    assert_int_equal(kept.status, TSR_ERROR_IO);
    tsr_status_set(TSR_ERROR_DEVICE, "no device");
    assert_int_equal(tsr_status_restore(&kept, TSR_OK), TSR_OK);
    tsr_status_keep_returned(&returned, TSR_ERROR_IO);
    assert_string_equal(returned.text, "no file");
    assert_int_equal(tsr_status_restore(&kept, TSR_ERROR_PEER), TSR_ERROR_PEER);
    tsr_status_keep_returned(&returned, TSR_ERROR_PEER);
    assert_string_equal(returned.text, "no file");
}

/* The status comes from code that set no sentence, or set one long before. */
static void a_bare_status_is_told_without_the_sentence_of_another(void **state)
{
    (void)state;
    tsr_kept_sentence kept;
    tsr_status_forget();
    assert_string_equal(tsr_status_message(), "");
    tsr_status_keep_returned(&kept, TSR_ERROR_IO);
    assert_string_equal(kept.text, "returned io without a sentence");
    assert_int_equal(kept.status, TSR_ERROR_IO);
    tsr_status_set(TSR_ERROR_DEVICE, "no device");
    tsr_status_keep_returned(&kept, TSR_ERROR_IO);
    assert_string_equal(kept.text, "returned io without a sentence");
    tsr_status_forget();
    tsr_status_keep_returned(&kept, TSR_ERROR_DEVICE);
    assert_string_equal(kept.text, "returned device without a sentence");
    tsr_status_keep_returned(&kept, (tsr_status)77);
    assert_string_equal(kept.text, "returned unknown without a sentence");
}

static void a_long_sentence_is_cut_at_1023_bytes(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    tsr_status_set(TSR_ERROR_STATE, "%s", text);
    assert_int_equal(strlen(tsr_status_message()), 1023);
}

static void *read_message(void *copy)
{
    snprintf(copy, 8, "%s", tsr_status_message());
    tsr_status_set(TSR_ERROR_IO, "elsewhere");
    return NULL;
}

static void threads_have_sentences_of_their_own(void **state)
{
    (void)state;
    char copy[8] = "unread";
    pthread_t thread;
    tsr_status_set(TSR_ERROR_STATE, "mine");
    assert_int_equal(pthread_create(&thread, NULL, read_message, copy), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_string_equal(copy, "");
    assert_string_equal(tsr_status_message(), "mine");
}

static void text_counts_what_it_has_no_room_for(void **state)
{
    (void)state;
    const char whole[] = "ab12cdef";
    for (size_t capacity = 0; capacity <= sizeof whole + 1; capacity++) {
        char buffer[16];
        memset(buffer, '#', sizeof buffer);
        tsr_text text = {capacity ? buffer : NULL, capacity, 0};
        tsr_text_append(&text, "ab%d", 12);
        tsr_text_append(&text, "%s", "");
        tsr_text_append(&text, "%s%c", "cde", 'f');
        assert_int_equal(text.length, strlen(whole));
        assert_int_equal(buffer[capacity], '#');
        if (capacity > 0) {
            assert_int_equal(strlen(buffer), capacity - 1 < strlen(whole) ? capacity - 1 : strlen(whole));
            assert_memory_equal(buffer, whole, strlen(buffer));
        }
    }
}

static void the_hash_tells_texts_and_their_ends_apart(void **state)
{
    (void)state;
    const char *const texts[] = {NULL, "", "a", "b", "ab", "ba"};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(tsr_hash_text(TSR_HASH_SEED, texts[i]) != tsr_hash_text(TSR_HASH_SEED, texts[j]));
    assert_true(tsr_hash_text(tsr_hash_text(TSR_HASH_SEED, "a"), "b") !=
                tsr_hash_text(tsr_hash_text(TSR_HASH_SEED, "ab"), ""));
    const int64_t words[] = {1, 2};
    assert_true(tsr_hash_words(TSR_HASH_SEED, words, 2) == tsr_hash_word(tsr_hash_word(TSR_HASH_SEED, 1), 2));
}

static void a_scan_steps_over_exactly_what_it_reads(void **state)
{
    (void)state;
    tsr_scan scan = {"list", "a12 ,  7,", 0};
    int64_t number = 0;
    assert_false(tsr_scan_accept(&scan, "b"));
    assert_false(tsr_scan_comma(&scan));
    assert_int_equal(scan.at, 0);
    assert_true(tsr_scan_accept(&scan, "a"));
    assert_int_equal(tsr_scan_number(&scan, 0, 12, "a number", &number), TSR_OK);
    assert_int_equal(number, 12);
    assert_int_equal(scan.at, 3);
    assert_true(tsr_scan_comma(&scan));
    assert_int_equal(scan.at, 7);
    assert_int_equal(tsr_scan_number(&scan, 7, 7, "a number", &number), TSR_OK);
    assert_true(tsr_scan_comma(&scan));
    assert_int_equal(tsr_scan_number(&scan, 0, 9, "a number", &number), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(), "list \"a12 ,  7,\", character 10: expected a number, found the end");
    assert_int_equal(number, 7);
}

static void a_number_outside_its_range_is_refused_where_it_begins(void **state)
{
    (void)state;
    const struct {
        const char *text;
        int64_t least, most;
        bool fits;
    } cases[] = {{"9223372036854775807", 0, INT64_MAX, true},
                 {"9223372036854775808", 0, INT64_MAX, false},
                 {"99999999999999999999999", 0, INT64_MAX, false},
                 {"0", 1, 5, false},
                 {"6", 1, 5, false},
                 {"5", 1, 5, true},
                 {"00000000000000000000005", 1, 5, true},
                 {"0", 0, 0, true},
                 {"7", 0, 3, false},
                 {"-1", 0, 5, false},
                 {"+1", 0, 5, false},
                 {" 1", 0, 5, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tsr_scan scan = {"number", cases[i].text, 0};
        int64_t number = -7;
        const tsr_status status = tsr_scan_number(&scan, cases[i].least, cases[i].most, "a number", &number);
        if ((status == TSR_OK) != cases[i].fits)
            fail_msg("\"%s\" from %lld to %lld: status %s", cases[i].text, (long long)cases[i].least,
                     (long long)cases[i].most, tsr_status_name(status));
        assert_int_equal(scan.at, cases[i].fits ? strlen(cases[i].text) : 0);
        assert_int_equal(number == -7, !cases[i].fits);
    }
}

static void a_long_text_is_quoted_short_so_that_the_reason_stays(void **state)
{
    (void)state;
    char text[5000];
    memset(text, '1', sizeof text);
    text[sizeof text - 1] = '\0';
    tsr_scan scan = {"list", text, 0};
    int64_t number;
    assert_int_equal(tsr_scan_number(&scan, 0, 5, "a small number", &number), TSR_ERROR_ARGUMENT);
    assert_non_null(
        strstr(tsr_status_message(), "..\", character 1: expected a small number, found a number beyond 5"));
}

static void bytes_that_do_not_print_are_named(void **state)
{
    (void)state;
    tsr_scan scan = {"list", "\x80", 0};
    tsr_scan_expected(&scan, 0, "a letter");
    assert_non_null(strstr(tsr_status_message(), "found byte 0x80"));
}

static void options_of_older_callers_are_read_as_far_as_they_go(void **state)
{
    (void)state;
    typedef struct numbers {
        size_t size;
        int64_t first, second;
    } numbers;
    numbers known = {sizeof known, 1, 2};
    assert_int_equal(tsr_options_read("call", NULL, &known, sizeof known), TSR_OK);
    assert_int_equal(known.first, 1);
    const numbers shorter = {offsetof(numbers, second), 5, 6};
    assert_int_equal(tsr_options_read("call", &shorter, &known, sizeof known), TSR_OK);
    assert_int_equal(known.first, 5);
    assert_int_equal(known.second, 2);
    const size_t refused[] = {0, sizeof(size_t), sizeof known + 1};
    for (size_t i = 0; i < 3; i++) {
        const numbers bad = {refused[i], 8, 9};
        assert_int_equal(tsr_options_read("call", &bad, &known, sizeof known), TSR_ERROR_ARGUMENT);
        assert_int_equal(known.first, 5);
    }
}

static void the_version_is_that_of_the_headers(void **state)
{
    (void)state;
    char text[32];
    snprintf(text, sizeof text, "%d.%d.%d", TSR_VERSION_MAJOR, TSR_VERSION_MINOR, TSR_VERSION_PATCH);
    assert_string_equal(tsr_version(), text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_of_its_own),
        cmocka_unit_test(a_sentence_may_quote_the_one_before),
        cmocka_unit_test(a_kept_sentence_is_told_again_after_others),
        cmocka_unit_test(a_kept_sentence_knows_its_status),
        cmocka_unit_test(a_bare_status_is_told_without_the_sentence_of_another),
        cmocka_unit_test(a_long_sentence_is_cut_at_1023_bytes),
        cmocka_unit_test(threads_have_sentences_of_their_own),
        cmocka_unit_test(text_counts_what_it_has_no_room_for),
        cmocka_unit_test(the_hash_tells_texts_and_their_ends_apart),
        cmocka_unit_test(a_scan_steps_over_exactly_what_it_reads),
        cmocka_unit_test(a_number_outside_its_range_is_refused_where_it_begins),
        cmocka_unit_test(a_long_text_is_quoted_short_so_that_the_reason_stays),
        cmocka_unit_test(bytes_that_do_not_print_are_named),
        cmocka_unit_test(options_of_older_callers_are_read_as_far_as_they_go),
        cmocka_unit_test(the_version_is_that_of_the_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
