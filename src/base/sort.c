#include "base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef struct heap {
    char *at;
    size_t bytes;
    tsr_compare *compare;
    const void *arg;
} heap;

static bool is_less(const heap *h, size_t a, size_t b)
{
    return h->compare(h->at + a * h->bytes, h->at + b * h->bytes, h->arg) < 0;
}

/* Swaps by 8-byte words, then the bytes that are left. */
static void swap(const heap *h, size_t a, size_t b)
{
    char *x = h->at + a * h->bytes, *y = h->at + b * h->bytes;
    size_t at = 0;
    for (uint64_t held, other; at + sizeof held <= h->bytes; at += sizeof held) {
        memcpy(&held, x + at, sizeof held);
        memcpy(&other, y + at, sizeof other);
        memcpy(x + at, &other, sizeof other);
        memcpy(y + at, &held, sizeof held);
    }
    for (; at < h->bytes; at++) {
        const char held = x[at];
        x[at] = y[at];
        y[at] = held;
    }
}

static void sift_down(const heap *h, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && is_less(h, child, child + 1))
            child++;
        if (!is_less(h, root, child))
            return;
        swap(h, root, child);
    }
}

static void reverse(const heap *h, size_t begin, size_t end)
{
    for (; begin + 1 < end; begin++)
        swap(h, begin, --end);
}

/* The end of the ascending run that starts at `begin`. */
static size_t run_end(const heap *h, size_t begin, size_t count)
{
    size_t end = begin + 1;
    while (end < count && !is_less(h, end, end - 1))
        end++;
    return end;
}

/* Sorts an array that is ascending, or ascending but rotated (3 4 1 2), and returns true; else
 * false. */
static bool sort_rotated(const heap *h, size_t count)
{
    const size_t middle = run_end(h, 0, count);
    if (middle >= count)
        return true;
    if (run_end(h, middle, count) < count || is_less(h, 0, count - 1))
        return false;
    reverse(h, 0, middle);
    reverse(h, middle, count);
    reverse(h, 0, count);
    return true;
}

void tsr_sort_array(void *array, size_t count, size_t bytes, tsr_compare *compare, const void *arg)
{
    const heap h = {array, bytes, compare, arg};
    if (sort_rotated(&h, count))
        return;
    for (size_t root = count / 2; root-- > 0;)
        sift_down(&h, root, count);
    for (size_t last = count - 1; last > 0; last--) {
        swap(&h, 0, last);
        sift_down(&h, 0, last);
    }
}
