/* The loops between the layers against the same in double precision. */
#include "attention.h"
#include "kernels.h"
#include "random.h"
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

/* Half an ulp of 1 in f32: what one rounding may cost, relatively. */
#define ROUNDING 0x1p-24

static void expect_close(double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%.9g is not %.9g to within %.3g", got, wanted, bound);
}

static void fill(float *x, int64_t count, const char *name)
{
    const uint64_t stream = llama_random_stream(1, name);
    for (int64_t i = 0; i < count; i++)
        x[i] = llama_random_symmetric(stream, (uint64_t)i);
}

/* The cut of the argument costs |x| * 2^-24 relatively at n * ln 2, the polynomial and its seven
 * steps a few roundings.
 */
static void exp_is_right_to_a_few_roundings(void **state)
{
    (void)state;
    for (double x = -86.9; x < 87.9; x += 0.00713) {
        const double wanted = exp((double)(float)x);
        expect_close(llama_exp((float)x), wanted, 6 * ROUNDING * wanted);
    }
    assert_true(llama_exp(0) == 1);
    assert_true(isfinite(llama_exp(1e30f)) && llama_exp(-1e30f) > 0 && llama_exp(-1e30f) < 1e-37f);
    assert_true(isnan(llama_exp(NAN)));
}

/* Widths around the number of lanes: the rest after the last whole group must count too. */
static void rms_norm_divides_by_the_root_mean_square(void **state)
{
    (void)state;
    float x[3 * 70], weight[70], y[3 * 70];
    fill(x, 3 * 70, "x");
    fill(weight, 70, "weight");
    for (int64_t width = 1; width <= 70; width++) {
        llama_rms_norm(x, weight, 3, width, 1e-5f, y);
        for (int64_t r = 0; r < 3; r++) {
            double sum = 0;
            for (int64_t i = 0; i < width; i++)
                sum += (double)x[r * width + i] * x[r * width + i];
            for (int64_t i = 0; i < width; i++) {
                const double wanted = weight[i] * x[r * width + i] / sqrt(sum / (double)width + 1e-5f);
                expect_close(y[r * width + i], wanted, 40 * ROUNDING * fabs(wanted) + 1e-12);
            }
        }
    }
}

static void softmax_sums_to_one_and_survives_large_scores(void **state)
{
    (void)state;
    float x[50];
    for (int64_t count = 1; count <= 50; count++) {
        fill(x, count, "scores");
        double total = 0, sum = 0;
        for (int64_t i = 0; i < count; i++)
            total += exp(500.0 * x[i] - 500);
        for (int64_t i = 0; i < count; i++)
            x[i] *= 500;
        float before[50];
        memcpy(before, x, sizeof before);
        llama_softmax(x, count);
        for (int64_t i = 0; i < count; i++) {
            /* Scores of up to 500 are themselves rounded by up to 500 * 2^-24. */
            const double wanted = exp((double)before[i] - 500) / total;
            expect_close(x[i], wanted, 1100 * ROUNDING * wanted + 1e-36);
            sum += x[i];
        }
        expect_close(sum, 1, 100 * ROUNDING);
    }
}

static void silu_multiply_is_silu_times_up(void **state)
{
    (void)state;
    float gate[] = {-200, -20, -1, -0.0f, 0, 0.5f, 3, 90}, up[] = {1, 2, 3, 4, 5, -6, 7, 8};
    double wanted[8];
    for (int i = 0; i < 8; i++)
        wanted[i] = (double)gate[i] / (1 + exp(-(double)gate[i])) * (double)up[i];
    llama_silu_multiply(gate, up, 8);
    for (int i = 0; i < 8; i++)
        expect_close(gate[i], wanted[i], 12 * ROUNDING * fabs(wanted[i]) + 1e-33);
}

/* Four queries on two key/value heads. */
static void attention_sees_own_heads_and_past_positions_only(void **state)
{
    (void)state;
    enum { DIM = 10, ROWS = 21, FIRST = 5, CAPACITY = 40, QUERIES = 4, KEYS = 2 };
    const llama_heads heads = {QUERIES, KEYS, 2, DIM};
    static float keys[(FIRST + ROWS) * KEYS * DIM], values[(FIRST + ROWS) * KEYS * DIM], queries[ROWS * QUERIES * DIM];
    static float stored_keys[KEYS * DIM * CAPACITY], stored_values[KEYS * CAPACITY * DIM], scores[CAPACITY],
        out[ROWS * QUERIES * DIM];
    fill(keys, (FIRST + ROWS) * KEYS * DIM, "keys");
    fill(values, (FIRST + ROWS) * KEYS * DIM, "values");
    fill(queries, ROWS * QUERIES * DIM, "queries");
    for (int i = 0; i < KEYS * DIM * CAPACITY; i++)
        stored_keys[i] = stored_values[i] = NAN;
    const llama_cache cache = {stored_keys, stored_values, CAPACITY};
    llama_cache_store(&cache, &heads, keys, values, FIRST, 0);
    llama_cache_store(&cache, &heads, keys + FIRST * KEYS * DIM, values + FIRST * KEYS * DIM, ROWS, FIRST);
    llama_attention(&cache, &heads, queries, ROWS, FIRST, scores, out);
    for (int r = 0; r < ROWS; r++)
        for (int h = 0; h < QUERIES; h++) {
            const float *const q = queries + (r * QUERIES + h) * DIM;
            double wanted[DIM] = {0}, total = 0;
            for (int t = 0; t <= FIRST + r; t++) {
                double score = 0;
                for (int d = 0; d < DIM; d++)
                    score += (double)q[d] * keys[(t * KEYS + h / 2) * DIM + d];
                const double weight = exp(score / sqrt(DIM));
                total += weight;
                for (int d = 0; d < DIM; d++)
                    wanted[d] += weight * values[(t * KEYS + h / 2) * DIM + d];
            }
            /* All values are at most 1: errors are roundings of a sum of 26 terms and of scores of
             * at most 3. */
            for (int d = 0; d < DIM; d++)
                expect_close(out[(r * QUERIES + h) * DIM + d], wanted[d] / total, 100 * ROUNDING);
        }
}

static void greedy_takes_the_first_of_the_largest(void **state)
{
    (void)state;
    const float logits[] = {1, 3, 2, 3};
    const llama_sampling greedy = {0, 1};
    assert_int_equal(llama_choose(&greedy, logits, 4, 0), 1);
}

/* 4000 draws: a share p has a standard deviation of at most 0.008; six of them make 0.048. */
static void draws_follow_softmax_and_repeat(void **state)
{
    (void)state;
    const float logits[] = {0, 2, 1};
    const llama_sampling sampling = {2, llama_random_stream(9, "tokens")};
    double seen[3] = {0};
    for (uint64_t step = 0; step < 4000; step++) {
        const int64_t token = llama_choose(&sampling, logits, 3, step);
        assert_int_equal(llama_choose(&sampling, logits, 3, step), token);
        seen[token]++;
    }
    const double total = 1 + exp(1) + exp(0.5);
    expect_close(seen[0] / 4000, 1 / total, 0.048);
    expect_close(seen[1] / 4000, exp(1) / total, 0.048);
    expect_close(seen[2] / 4000, exp(0.5) / total, 0.048);
}

static void random_numbers_differ_between_streams_and_fill_their_range(void **state)
{
    (void)state;
    assert_true(llama_random_stream(1, "a") != llama_random_stream(1, "b"));
    assert_true(llama_random_stream(1, "a") != llama_random_stream(2, "a"));
    assert_true(llama_random_stream(1, "ab") != llama_random_stream(1, "ba"));
    const uint64_t stream = llama_random_stream(1, "a");
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const double x = llama_random_symmetric(stream, i);
        assert_true(x >= -1 && x < 1);
        sum += x;
        squares += x * x;
    }
    /* Mean 0 and variance 1/3, with standard deviations of 0.0058 and 0.003 over 10000 numbers. */
    expect_close(sum / 10000, 0, 0.035);
    expect_close(squares / 10000, 1.0 / 3, 0.018);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_right_to_a_few_roundings),
        cmocka_unit_test(rms_norm_divides_by_the_root_mean_square),
        cmocka_unit_test(softmax_sums_to_one_and_survives_large_scores),
        cmocka_unit_test(silu_multiply_is_silu_times_up),
        cmocka_unit_test(attention_sees_own_heads_and_past_positions_only),
        cmocka_unit_test(greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(draws_follow_softmax_and_repeat),
        cmocka_unit_test(random_numbers_differ_between_streams_and_fill_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
