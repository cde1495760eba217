#include <tessera/bench.h>
#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>

/* 1 / DOUBT bounds the probability, on each side, that the true median is outside the interval. */
#define DOUBT 8

/* A power of two by which sums of binomials are kept small. */
#define SCALE 512

static int compare_values(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/*
 * The greatest k for which the true median lies below the k-th least of `count` times with a
 * probability of at most 1 / DOUBT, that is sum_{i < k} C(count, i) / 2^count, whatever the
 * distribution; 0: there is none. H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition,
 * section 7.1. Binomials and sums are kept below 2^SCALE, times 2^(count - power).
 */
static int64_t least_inside(int64_t count)
{
    const double most = ldexp(1, SCALE);
    double binomial = 1, outside = 0;
    int64_t k = 0, power = count;
    while (power >= 2 * SCALE || DOUBT * (outside + binomial) <= ldexp(1, (int)power)) {
        outside += binomial;
        binomial *= (double)(count - k) / (double)(k + 1);
        k++;
        if (binomial > most) {
            binomial /= most;
            outside /= most;
            power -= SCALE;
        }
    }
    return k;
}

tsr_status tsr_bench_sum_up(double *seconds, int64_t count, tsr_bench_spread *out)
{
    if (!seconds || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_bench_sum_up: %s is NULL", seconds ? "out" : "seconds");
    if (count < 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_bench_sum_up: count is %lld; it must be at least 1",
                              (long long)count);
    qsort(seconds, (size_t)count, sizeof *seconds, compare_values);
    const int64_t k = least_inside(count);
    *out = (tsr_bench_spread){.median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2,
                              .min = seconds[0],
                              .max = seconds[count - 1],
                              .low = k > 0 ? seconds[k - 1] : 0,
                              .high = k > 0 ? seconds[count - k] : INFINITY};
    return TSR_OK;
}
