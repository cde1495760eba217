/* How tokens are drawn from logits, and the random numbers by which. */
#include "random.h"
#include "sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t choose(const llama_sampling *sampling, float *logits, int64_t count, uint64_t step)
{
    double wide[8];
    const tsr_tensor narrow = tsr_tensor_contiguous(logits, TSR_F32, 1, &count);
    const tsr_tensor same = tsr_tensor_contiguous(wide, TSR_F64, 1, &count);
    for (int64_t i = 0; i < count; i++)
        wide[i] = logits[i];
    const int64_t token = llama_choose(sampling, &narrow, step);
    assert_int_equal(llama_choose(sampling, &same, step), token);
    return token;
}

static void expect_close(double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%.9g is not %.9g to within %.3g", got, wanted, bound);
}

static void greedy_takes_the_first_of_the_largest(void **state)
{
    (void)state;
    float logits[] = {1, 3, 2, 3};
    const llama_sampling greedy = {0, 1};
    assert_int_equal(choose(&greedy, logits, 4, 0), 1);
}

/* 4000 draws: a share p has a standard deviation of at most 0.008; six of them make 0.048. */
static void draws_follow_softmax_and_repeat(void **state)
{
    (void)state;
    float logits[] = {0, 2, 1};
    const llama_sampling sampling = {2, llama_random_stream(9, "tokens")};
    double seen[3] = {0};
    for (uint64_t step = 0; step < 4000; step++) {
        const int64_t token = choose(&sampling, logits, 3, step);
        assert_int_equal(choose(&sampling, logits, 3, step), token);
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
        cmocka_unit_test(greedy_takes_the_first_of_the_largest),
        cmocka_unit_test(draws_follow_softmax_and_repeat),
        cmocka_unit_test(random_numbers_differ_between_streams_and_fill_their_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
