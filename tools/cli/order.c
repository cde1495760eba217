#include "cli/order.h"

#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double sort_to_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_values);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

static int compare_ranks(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t sort_ranks(int64_t *ranks, size_t count)
{
    size_t kept = 0;
    qsort(ranks, count, sizeof *ranks, compare_ranks);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

const int64_t *find_rank(const int64_t *ranks, size_t count, int64_t rank)
{
    return bsearch(&rank, ranks, count, sizeof rank, compare_ranks);
}
