#include "place/peak_flops.h"

#include <tessera/sys/device.h>

#include <stddef.h>
#include <time.h>

/* Independent sums: more than the multiply-adds that a core has in flight, and no more than it has
 * vector registers. */
#define SUMS 12
enum { STEPS = 1 << 18, ROUNDS = 5 };

double thread_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

#if defined(__x86_64__)
#include <immintrin.h>

__attribute__((target("avx512f"))) static float add_avx512(int steps, float x)
{
    __m512 sums[SUMS];
    const __m512 factor = _mm512_set1_ps(x);
    for (int k = 0; k < SUMS; k++)
        sums[k] = _mm512_set1_ps((float)k);
    for (int i = 0; i < steps; i++)
#pragma GCC unroll 16
        for (int k = 0; k < SUMS; k++)
            sums[k] = _mm512_fmadd_ps(sums[k], factor, factor);
    for (int k = 1; k < SUMS; k++)
        sums[0] = _mm512_add_ps(sums[0], sums[k]);
    return _mm512_reduce_add_ps(sums[0]);
}

__attribute__((target("avx2,fma"))) static float add_avx2(int steps, float x)
{
    __m256 sums[SUMS];
    const __m256 factor = _mm256_set1_ps(x);
    for (int k = 0; k < SUMS; k++)
        sums[k] = _mm256_set1_ps((float)k);
    for (int i = 0; i < steps; i++)
#pragma GCC unroll 16
        for (int k = 0; k < SUMS; k++)
            sums[k] = _mm256_fmadd_ps(sums[k], factor, factor);
    for (int k = 1; k < SUMS; k++)
        sums[0] = _mm256_add_ps(sums[0], sums[k]);
    return _mm256_cvtss_f32(sums[0]);
}

static const struct {
    const char *kernels;
    int lanes;
    float (*add)(int steps, float x);
} ways[] = {{"avx512", 16, add_avx512}, {"avx2", 8, add_avx2}};
#define WAYS ((int)(sizeof ways / sizeof *ways))

/* Index of the widest vectors that run here; WAYS if none do. */
static int find_way(void)
{
    const tsr_device_table *table;
    int way = 0;
    while (way < WAYS && tsr_device_host_table(ways[way].kernels, &table) != TSR_OK)
        way++;
    return way;
}

double peak_flops_measure(void)
{
    const int way = find_way();
    double best = 0;
    /* With this factor the sums converge, so they never overflow or become denormal, which could be
     * slow. */
    volatile float factor = 0.5f, sum = 0;
    for (int round = 0; round < ROUNDS && way < WAYS; round++) {
        const double start = thread_seconds();
        sum = ways[way].add(STEPS, factor);
        const double rate = 2.0 * SUMS * STEPS * ways[way].lanes / (thread_seconds() - start);
        best = rate > best ? rate : best;
    }
    (void)sum;
    return best;
}
#else
double peak_flops_measure(void)
{
    return 0;
}
#endif
