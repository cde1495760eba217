/**
 * Numbers and rows of f64 with bounds of their errors.
 *
 * u is 2^-53, and gamma_n = n u / (1 - n u). A sum of n products, in any order, on any number of
 * ranks, with or without fused multiply-adds, differs from the exact one by at most gamma_n times
 * the sum of the products' sizes (Higham, Accuracy and Stability of Numerical Algorithms, 2nd
 * edition, section 3.1): each product passes at most n roundings. What its factors already lack
 * adds |a| e(b) + |b| e(a) for each product a b:
 *
 *     e(sum) = sum of (|a| e(b) + |b| e(a)) + gamma_n sum of |a b|.
 *
 * A function f adds |f'(x)| e(x), and at most NUMBER_ULPS u of its own value.
 *
 * Sums of sizes grow faster than sums, by about sqrt(n) in each layer, and behind a few layers say
 * nothing. So what a row (the features of a token, or of a head) lacks is bounded in the 2-norm:
 * e(row) >= |row' - row|. A product y = W x then adds
 *
 *     e(y) = |W| e(x) + |gamma_n (sum of |w x| of each element)|,
 *
 * where |W|, the spectral norm, is at most the 16th root of the Frobenius norm of (W^T W)^8. What
 * other steps add, by the norms of their Jacobians, stands beside each in reference.c.
 *
 * Terms of second order, e(a) e(b), are 1e-12 of the others and are left out. Two computations of
 * one formula differ by at most 2 e.
 */
#ifndef TESTS_TRAIN_NUMBER_H
#define TESTS_TRAIN_NUMBER_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#define NUMBER_U (DBL_EPSILON / 2)

/** The most that exp, log, a root, a sine or silu errs by (docs/adr/0037), in units of u. */
enum { NUMBER_ULPS = 8 };

typedef struct number {
    double value, error;
} number;

static inline double number_gamma(int64_t n)
{
    return (double)n * NUMBER_U / (1 - (double)n * NUMBER_U);
}

static inline number number_of(double value)
{
    return (number){value, 0};
}

static inline number number_add(number a, number b)
{
    const double sum = a.value + b.value;
    return (number){sum, a.error + b.error + NUMBER_U * fabs(sum)};
}

static inline number number_subtract(number a, number b)
{
    return number_add(a, (number){-b.value, b.error});
}

static inline number number_times(number a, number b)
{
    const double product = a.value * b.value;
    return (number){product, fabs(a.value) * b.error + fabs(b.value) * a.error + NUMBER_U * fabs(product)};
}

/** A function's value, where its derivative is `slope`. */
static inline number number_function(double value, double slope, number x)
{
    return (number){value, fabs(slope) * x.error + NUMBER_ULPS * NUMBER_U * fabs(value)};
}

static inline number number_exp(number x)
{
    return number_function(exp(x.value), exp(x.value), x);
}

static inline number number_inverse(number x)
{
    return number_function(1 / x.value, 1 / (x.value * x.value), x);
}

/** The sum of n products of elements that are `sa` and `sb` apart. */
static inline number number_dot(int64_t n, const number *a, int64_t sa, const number *b, int64_t sb)
{
    double sum = 0, sizes = 0, error = 0;
    for (int64_t i = 0; i < n; i++) {
        const number x = a[i * sa], y = b[i * sb];
        sum += x.value * y.value;
        sizes += fabs(x.value * y.value);
        error += fabs(x.value) * y.error + fabs(y.value) * x.error;
    }
    return (number){sum, error + number_gamma(n) * sizes};
}

#endif
