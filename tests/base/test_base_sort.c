/* Sorting, held against counting: every short sequence of small numbers, and elements of every size
 * that words do not divide. */
#include "base/sort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 7, BYTES = 41, LONG = 1000 };

static size_t compared;

static int by_first_byte(const void *a, const void *b, const void *arg)
{
    assert_ptr_equal(arg, &compared);
    compared++;
    return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* All bytes of element i are those of its key, so that one that was torn apart shows. */
static void check_sorted(const int *keys, size_t count, size_t bytes)
{
    unsigned char at[MOST * BYTES + 1] = {0};
    for (size_t i = 0; i < count; i++)
        memset(at + i * bytes, keys[i], bytes);
    at[count * bytes] = 0xee;
    tsr_sort_array(at, count, bytes, by_first_byte, &compared);
    size_t next = 0;
    for (int key = 0; key < MOST; key++) {
        for (size_t i = 0; i < count; i++) {
            for (size_t k = 0; keys[i] == key && k < bytes; k++)
                if (at[next * bytes + k] != key)
                    fail_msg("byte %zu of element %zu of %zu is of key %d, not %d (%zu bytes each)", k, next, count,
                             at[next * bytes + k], key, bytes);
            next += keys[i] == key;
        }
    }
    assert_int_equal(at[count * bytes], 0xee);
}

/* The next of all sequences of `count` keys below `count`; false after the last. */
static bool advance(int *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (++keys[i] < (int)count)
            return true;
        keys[i] = 0;
    }
    return false;
}

static void every_short_sequence_is_sorted(void **state)
{
    (void)state;
    for (size_t count = 0; count <= 6; count++) {
        int keys[MOST] = {0};
        do {
            check_sorted(keys, count, 12);
        } while (advance(keys, count));
    }
}

static void elements_of_any_size_stay_whole(void **state)
{
    (void)state;
    static const int orders[][MOST] = {
        {6, 5, 4, 3, 2, 1, 0}, {3, 4, 5, 6, 0, 1, 2}, {6, 0, 1, 2, 3, 4, 5}, {1, 0, 3, 2, 5, 4, 6}};
    for (size_t bytes = 1; bytes <= BYTES; bytes++)
        for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
            check_sorted(orders[i], MOST, bytes);
}

/* Sorts an ascending sequence that was rotated by `begin`, and returns the number of
 * comparisons. */
static size_t count_comparisons(size_t begin)
{
    unsigned char at[LONG];
    for (size_t i = 0; i < LONG; i++)
        at[i] = (unsigned char)((i + begin) % LONG * 255 / (LONG - 1));
    compared = 0;
    tsr_sort_array(at, LONG, 1, by_first_byte, &compared);
    for (size_t i = 1; i < LONG; i++)
        assert_true(at[i - 1] <= at[i]);
    return compared;
}

static void what_is_in_order_is_looked_through_once(void **state)
{
    (void)state;
    assert_int_equal(count_comparisons(0), LONG - 1);
    for (size_t begin = 1; begin < LONG; begin++)
        if (count_comparisons(begin) > LONG)
            fail_msg("%zu comparisons of %d elements that begin at number %zu", compared, LONG, begin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_sequence_is_sorted),
        cmocka_unit_test(elements_of_any_size_stay_whole),
        cmocka_unit_test(what_is_in_order_is_looked_through_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
