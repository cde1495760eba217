/* What is done with all gradients together: norms, clipping, loss scales, flags; schedules. */
#include "layers.h"
#include "trials.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STEPS = 3 };

static const int64_t counts[] = {15, 7, 1};

static void set_up(trial *t)
{
    const tsr_optimizer_options sgd = TSR_SGD_INIT;
    *t = (trial){.mesh = "1",
                 .dtype = TSR_F64,
                 .options = sgd,
                 .count = 3,
                 .parameters = {{2, {5, 3}, "R", "R", NULL}, {1, {7}, "R", "R", NULL}, {0, {0}, "R", "R", NULL}},
                 .steps = STEPS,
                 .rate = 0.5};
}

static double find_norm(int step)
{
    double sum = 0;
    for (int p = 0; p < 3; p++)
        for (int64_t i = 0; i < counts[p]; i++)
            sum += trial_gradient(p, step, i) * trial_gradient(p, step, i);
    return sqrt(sum);
}

/* The largest relative error of a norm of 23 elements: each of as many sums and squares rounds, and
 * the root halves what they leave, but rounds too. */
static const double of_norm = 24 * DBL_EPSILON;

static void expect_close(double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%.17g instead of %.17g, which is more than %g away", got, wanted, bound);
}

/* A step of SGD by clipped gradients; norms below `most` change nothing. */
static void expect_clipped(const trial *t)
{
    static trial_result got;
    static const char *const names[] = {"w0", "w1", "w2"};
    trial_run_threads(t, &got);
    for (int step = 1; step <= STEPS; step++)
        expect_close(got.norms[step - 1], find_norm(step), find_norm(step) * of_norm);
    for (int p = 0; p < 3; p++)
        for (int64_t i = 0; i < counts[p]; i++) {
            double w = trial_weight(p, i), bound = fabs(w) * DBL_EPSILON;
            for (int step = 1; step <= STEPS; step++) {
                const double norm = find_norm(step);
                const double factor = t->max_norm / (norm + 1e-6) < 1 ? t->max_norm / (norm + 1e-6) : 1;
                const double change = t->rate * factor * trial_gradient(p, step, i);
                w -= change;
                bound += fabs(change) * (of_norm + 6 * DBL_EPSILON) + fabs(w) * DBL_EPSILON;
            }
            expect_close(trial_find(&got, names[p])[i], w, bound);
        }
}

typedef struct lying {
    const char *mesh, *placements[3], *gradients[3];
    unsigned shard_over;
} lying;

static const lying lyings[] = {
    {"2", {"R", "S(0)", "R"}, {"P", "S(0)", "R"}, 0},
    {"3", {"R", "R", "R"}, {"R", "P", "P"}, 1},
    {"4", {"S(0)", "S(0)", "R"}, {"S(0)", "S(0)", "P"}, 0},
    {"2x2", {"R,S(1)", "R,S(0)", "R,R"}, {"P,S(1)", "P,S(0)", "P,P"}, 0},
    {"2x2", {"R,S(0)", "R,R", "R,R"}, {"P,S(0)", "R,P", "R,R"}, 1},
};

static void norms_count_each_element_once(void **state)
{
    trial t;
    (void)state;
    for (int i = -1; i < (int)(sizeof lyings / sizeof lyings[0]); i++)
        for (int way = 0; way < 3; way++) {
            set_up(&t);
            t.max_norm = way == 0 ? 0.7 : way == 1 ? 1000 : INFINITY;
            for (int p = 0; p < 3 && i >= 0; p++) {
                t.mesh = lyings[i].mesh;
                t.options.shard_over = lyings[i].shard_over;
                t.parameters[p].placements = lyings[i].placements[p];
                t.parameters[p].gradient = lyings[i].gradients[p];
            }
            expect_clipped(&t);
        }
}

/* A power of two leaves no trace. */
static void scales_are_taken_out(void **state)
{
    static trial_result plain, scaled;
    trial t;
    (void)state;
    set_up(&t);
    t.max_norm = 0.7;
    trial_run_threads(&t, &plain);
    t.scale = 4096;
    trial_run_threads(&t, &scaled);
    trial_expect_same(&scaled, &plain);
    assert_memory_equal(scaled.norms, plain.norms, sizeof plain.norms);
}

static void expect_rate(const tsr_schedule *s, int64_t step, double wanted)
{
    double got;
    assert_int_equal(tsr_schedule_at(s, step, &got), TSR_OK);
    expect_close(got, wanted, 4 * DBL_EPSILON * s->peak);
}

static void schedules_are_functions_of_the_step(void **state)
{
    tsr_schedule s = TSR_SCHEDULE_INIT;
    double got;
    (void)state;
    expect_rate(&s, 0, 1e-3);
    expect_rate(&s, 12345, 1e-3);
    s = (tsr_schedule){sizeof s, TSR_SCHEDULE_LINEAR, 2, 0.5, 10, 110};
    expect_rate(&s, 0, 0);
    expect_rate(&s, 5, 1);
    expect_rate(&s, 10, 2);
    expect_rate(&s, 60, 1.25);
    expect_rate(&s, 110, 0.5);
    expect_rate(&s, 1000, 0.5);
    s.kind = TSR_SCHEDULE_COSINE;
    expect_rate(&s, 9, 1.8);
    expect_rate(&s, 10, 2);
    expect_rate(&s, 35, 0.5 + 1.5 * 0.5 * (1 + sqrt(0.5)));
    expect_rate(&s, 60, 1.25);
    expect_rate(&s, 110, 0.5);
    s.kind = TSR_SCHEDULE_CONSTANT;
    expect_rate(&s, 1, 0.2);
    expect_rate(&s, 500, 2);
    assert_int_equal(tsr_schedule_at(&s, -1, &got), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "step is -1, warmup 10 and steps 110, but each must be 0 or more"));
    s.peak = NAN;
    assert_int_equal(tsr_schedule_at(&s, 1, &got), TSR_ERROR_ARGUMENT);
    assert_int_equal(tsr_schedule_at(NULL, 1, &got), TSR_ERROR_ARGUMENT);
}

static void loss_scales_follow_runs(void **state)
{
    tsr_loss_scale_options o = TSR_LOSS_SCALE_OPTIONS_INIT;
    tsr_loss_scale s = TSR_LOSS_SCALE_INIT;
    (void)state;
    o.growth_interval = 3;
    static const struct {
        int finite;
        double scale;
    } runs[] = {{1, 65536}, {1, 65536}, {1, 131072}, {1, 131072}, {0, 65536},
                {1, 65536}, {1, 65536}, {0, 32768},  {0, 16384},  {1, 16384}};
    for (size_t i = 0; i < sizeof runs / sizeof runs[0]; i++) {
        assert_int_equal(tsr_loss_scale_next(&s, runs[i].finite, &o), TSR_OK);
        assert_true(s.scale == runs[i].scale);
    }
    s = (tsr_loss_scale){DBL_MAX, 1999};
    assert_int_equal(tsr_loss_scale_next(&s, 1, NULL), TSR_OK);
    assert_true(s.scale == DBL_MAX && s.finite_runs == 0);
    o.backoff = 1;
    assert_int_equal(tsr_loss_scale_next(&s, 1, &o), TSR_ERROR_ARGUMENT);
    assert_non_null(strstr(tsr_status_message(), "backoff 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(norms_count_each_element_once),
        cmocka_unit_test(scales_are_taken_out),
        cmocka_unit_test(schedules_are_functions_of_the_step),
        cmocka_unit_test(loss_scales_follow_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
