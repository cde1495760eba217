#include "ops/kernels/losses/losses_kernels.h"

#include "ops/kernels/functions.h"
#include "ops/kernels/functions_f32.h"

#define NAME_(kernels) tsr_losses_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

#define BLOCK TSR_LOSSES_BLOCK

#define LOOP(count) _Pragma("omp simd") for (int64_t i = 0; i < (count); i++)

/* Without any logits, or with those of -infinity alone, differences are taken to 0, so that their
 * exponentials are 0. */
static double shift_of(const tsr_loss_sums *s)
{
    return s->largest == -INFINITY ? 0 : s->largest;
}

/* Makes the largest logit at least `largest`. */
static void raise_largest(tsr_loss_sums *s, double largest)
{
    if (largest > s->largest) {
        s->sum *= tsr_f64_exp(s->largest - largest);
        s->largest = largest;
    }
}

static double total_f64(const double *x, int64_t n)
{
    double terms[BLOCK];
    LOOP(n)
    {
        terms[i] = x[i];
    }
    for (int64_t i = n; i < BLOCK; i++)
        terms[i] = 0;
    for (int half = BLOCK / 2; half > 0; half /= 2)
        LOOP(half)
        {
            terms[i] += terms[i + half];
        }
    return terms[0];
}

static double total_f32(const float *x, int64_t n)
{
    double terms[BLOCK];
    LOOP(n)
    {
        terms[i] = x[i];
    }
    return total_f64(terms, n);
}

#define DEFINE(dtype, T, exponential)                                                                                  \
    static T largest_##dtype(const T *x, int64_t n)                                                                    \
    {                                                                                                                  \
        T largest = -INFINITY;                                                                                         \
        _Pragma("omp simd reduction(max : largest)") for (int64_t i = 0; i < n; i++)                                   \
        {                                                                                                              \
            largest = x[i] > largest ? x[i] : largest;                                                                 \
        }                                                                                                              \
        return largest;                                                                                                \
    }                                                                                                                  \
    static void scan_block_##dtype(const T *x, int64_t n, tsr_loss_sums *s)                                            \
    {                                                                                                                  \
        T terms[BLOCK];                                                                                                \
        raise_largest(s, largest_##dtype(x, n));                                                                       \
        const T shift = (T)shift_of(s);                                                                                \
        LOOP(n)                                                                                                        \
        {                                                                                                              \
            terms[i] = exponential(x[i] - shift);                                                                      \
        }                                                                                                              \
        for (int64_t i = n; i < BLOCK; i++)                                                                            \
            terms[i] = 0;                                                                                              \
        for (int half = BLOCK / 2; half > 0; half /= 2)                                                                \
            LOOP(half)                                                                                                 \
            {                                                                                                          \
                terms[i] += terms[i + half];                                                                           \
            }                                                                                                          \
        s->sum += terms[0];                                                                                            \
    }                                                                                                                  \
    static void scan_##dtype(const void *logits, int64_t n, bool totals, tsr_loss_sums *sums)                          \
    {                                                                                                                  \
        const T *const x = logits;                                                                                     \
        for (int64_t done = 0; done < n; done += BLOCK) {                                                              \
            const int64_t count = n - done < BLOCK ? n - done : BLOCK;                                                 \
            scan_block_##dtype(x + done, count, sums);                                                                 \
            if (totals)                                                                                                \
                sums->total += total_##dtype(x + done, count);                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    static void slopes_##dtype(const void *logits, void *to, int64_t n, double largest, double factor, double less)    \
    {                                                                                                                  \
        const T *const x = logits;                                                                                     \
        T *const slopes = to;                                                                                          \
        const T shift = (T)largest, times = (T)factor, minus = (T)less;                                                \
        LOOP(n)                                                                                                        \
        {                                                                                                              \
            slopes[i] = exponential(x[i] - shift) * times - minus;                                                     \
        }                                                                                                              \
    }

DEFINE(f64, double, tsr_f64_exp)
DEFINE(f32, float, tsr_f32_exp)

static void merge(tsr_loss_sums *sums, const tsr_loss_sums *others)
{
    raise_largest(sums, others->largest);
    sums->sum +=
        others->largest == sums->largest ? others->sum : others->sum * tsr_f64_exp(others->largest - sums->largest);
    sums->total += others->total;
}

static double level(const tsr_loss_sums *sums)
{
    return sums->largest + tsr_f64_log(sums->sum);
}

const tsr_losses_kernels NAME(TSR_KERNELS) = {
    .scan = {[TSR_F64] = scan_f64, [TSR_F32] = scan_f32},
    .slopes = {[TSR_F64] = slopes_f64, [TSR_F32] = slopes_f32},
    .merge = merge,
    .level = level,
};
