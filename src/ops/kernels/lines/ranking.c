#include "ops/kernels/lines/ranking.h"

/* The end of the run that begins at `begin`. */
static int64_t find_end(const tsr_ranking *ranking, const tsr_ranked *elements, int64_t begin, int64_t n)
{
    int64_t end = begin + 1;
    while (end < n && !tsr_ranked_before(ranking, &elements[end], &elements[end - 1]))
        end++;
    return end < n ? end : n;
}

static void merge(const tsr_ranking *ranking, const tsr_ranked *from, int64_t middle, int64_t end, tsr_ranked *to)
{
    for (int64_t a = 0, b = middle, at = 0; at < end; at++) {
        const bool second = a == middle || (b < end && tsr_ranked_before(ranking, &from[b], &from[a]));
        to[at] = second ? from[b++] : from[a++];
    }
}

/* Merges each run with the next; returns the number of runs that are left. */
static int64_t merge_runs(const tsr_ranking *ranking, const tsr_ranked *from, tsr_ranked *to, int64_t n)
{
    int64_t runs = 0;
    for (int64_t begin = 0; begin < n; runs++) {
        const int64_t middle = find_end(ranking, from, begin, n);
        const int64_t end = middle < n ? find_end(ranking, from, middle, n) : n;
        merge(ranking, from + begin, middle - begin, end - begin, to + begin);
        begin = end;
    }
    return runs;
}

void tsr_ranked_sort(const tsr_ranking *ranking, tsr_ranked *elements, tsr_ranked *spare, int64_t n)
{
    tsr_ranked *from = elements, *to = spare;
    for (int64_t runs = n; runs > 1;) {
        runs = merge_runs(ranking, from, to, n);
        tsr_ranked *const swap = from;
        from = to;
        to = swap;
    }
    if (from != elements && n)
        memcpy(elements, from, (size_t)n * sizeof *from);
}

/* Moves the element at `at` of a heap down, below those that come after it. */
static void sink(const tsr_ranking *ranking, tsr_ranked *heap, int64_t count, int64_t at)
{
    while (2 * at + 1 < count) {
        int64_t child = 2 * at + 1;
        if (child + 1 < count && tsr_ranked_before(ranking, &heap[child], &heap[child + 1]))
            child++;
        if (!tsr_ranked_before(ranking, &heap[at], &heap[child]))
            return;
        const tsr_ranked swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
        at = child;
    }
}

void tsr_ranked_offer(const tsr_ranking *ranking, tsr_ranked element, tsr_ranked *kept, int64_t most, int64_t *count)
{
    if (*count < most) {
        kept[(*count)++] = element;
        for (int64_t at = *count / 2 - 1; *count == most && at >= 0; at--)
            sink(ranking, kept, most, at);
    } else if (most > 0 && tsr_ranked_before(ranking, &element, &kept[0])) {
        kept[0] = element;
        sink(ranking, kept, most, 0);
    }
}
