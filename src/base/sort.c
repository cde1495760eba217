#include "base/sort.h"

#include <stdbool.h>
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

static void swap(const heap *h, size_t a, size_t b)
{
    char *x = h->at + a * h->bytes, *y = h->at + b * h->bytes, held[64];
    for (size_t left = h->bytes; left > 0;) {
        const size_t part = left < sizeof held ? left : sizeof held;
        memcpy(held, x, part);
        memcpy(x, y, part);
        memcpy(y, held, part);
        x += part;
        y += part;
        left -= part;
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

static bool is_sorted(const heap *h, size_t count)
{
    for (size_t i = 1; i < count; i++)
        if (is_less(h, i, i - 1))
            return false;
    return true;
}

void tsr_sort(void *array, size_t count, size_t bytes, tsr_compare *compare, const void *arg)
{
    const heap h = {array, bytes, compare, arg};
    if (is_sorted(&h, count))
        return;
    for (size_t root = count / 2; root-- > 0;)
        sift_down(&h, root, count);
    for (size_t last = count - 1; last > 0; last--) {
        swap(&h, 0, last);
        sift_down(&h, 0, last);
    }
}
