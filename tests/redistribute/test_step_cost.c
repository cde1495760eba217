/* The model's seconds of one step. All numbers are sums of few powers of two, so that equality is
 * exact. */
#include "redistribute/match/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const tsr_cost_profile profile = {.inside = {0.25, 64}, .between = {0.5, 16}};

static void assert_seconds(double inside, double between, double wanted)
{
    tsr_load within = {0}, across = {0};
    tsr_load_add(&within, inside);
    tsr_load_add(&across, between);
    const double found = tsr_cost_seconds(&profile, within, across);
    if (found != wanted)
        fail_msg("%.17g bytes inside and %.17g between take %.17g seconds instead of %.17g", inside, between, found,
                 wanted);
}

static void a_step_without_bytes_takes_no_time(void **state)
{
    (void)state;
    assert_seconds(0, 0, 0);
}

static void one_kind_of_link_costs_latency_and_bytes_over_bandwidth(void **state)
{
    (void)state;
    assert_seconds(32, 0, 0.25 + 0.5);
    assert_seconds(0, 32, 0.5 + 2);
}

static void two_kinds_run_at_once_and_the_slower_one_counts(void **state)
{
    (void)state;
    assert_seconds(64, 16, 0.5 + 1);
    assert_seconds(256, 16, 0.25 + 4);
    assert_seconds(80, 16, 1.5);
    assert_seconds(1, 0x1p54, 0.5 + 0x1p50);
    assert_seconds(0, 0x1p90, 0x1p86);
}

static void assert_plan_seconds(tsr_load inside, tsr_load between, double wanted)
{
    const double found = tsr_cost_seconds(&profile, inside, between);
    if (found != wanted)
        fail_msg("%d steps, %.17g bytes inside and %d, %.17g between take %.17g seconds instead of %.17g", inside.steps,
                 inside.bytes, between.steps, between.bytes, found, wanted);
}

static void every_step_of_a_kind_of_link_costs_its_latency(void **state)
{
    (void)state;
    assert_plan_seconds((tsr_load){0, 0}, (tsr_load){0, 0}, 0);
    assert_plan_seconds((tsr_load){2, 128}, (tsr_load){0, 0}, 2 * 0.25 + 2);
    assert_plan_seconds((tsr_load){2, 64}, (tsr_load){1, 32}, 0.5 + 2);
    assert_plan_seconds((tsr_load){3, 128}, (tsr_load){1, 32}, 3 * 0.25 + 2);
    assert_plan_seconds((tsr_load){1, 0}, (tsr_load){0, 0}, 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_without_bytes_takes_no_time),
        cmocka_unit_test(one_kind_of_link_costs_latency_and_bytes_over_bandwidth),
        cmocka_unit_test(two_kinds_run_at_once_and_the_slower_one_counts),
        cmocka_unit_test(every_step_of_a_kind_of_link_costs_its_latency),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
