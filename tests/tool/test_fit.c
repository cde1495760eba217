/* The fit of links to times in bench calibrate. */
#include <bench/calibrate/fit_profile.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The sizes that the tool measures: 64 bytes to 64 MiB. */
#define SIZES 11

static size_t exact_points(const tsr_link *link, fit_point *points)
{
    for (size_t i = 0; i < SIZES; i++) {
        points[i].bytes = ldexp(64, 2 * (int)i);
        points[i].seconds = fit_seconds(link, points[i].bytes);
    }
    return SIZES;
}

static double near_one(double found, double wanted)
{
    return fabs(found / wanted - 1);
}

/*
 * Bound of the rounding errors, with u = 2^-53: times are rounded twice, so u and v are off by 3u,
 * their products by 7u, sums of 11 by 10u more, products of two sums by 35u in all. For the links
 * below su * svv is at least 4 times sv * suv, suu * sv at least 4 times suv * su, and suu * svv at
 * least 30 times suv^2: the differences are off by 35u * (4 + 1) / (4 - 1) + u and 35u * (30 + 1) /
 * (30 - 1) + u, their quotient by less than 100u, and 1 / b by one u more.
 */
#define ALLOWED (101 * DBL_EPSILON / 2)

static void points_on_a_line_give_that_line(void **state)
{
    (void)state;
    static const tsr_link links[] = {{5e-7, 16e9}, {5e-6, 12.5e9}, {1e-4, 1e9}, {3.2e-7, 3e10}};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        fit_point points[SIZES];
        tsr_link found;
        const size_t count = exact_points(&links[i], points);
        assert_true(fit_link(points, count, &found));
        if (near_one(found.latency, links[i].latency) > ALLOWED ||
            near_one(found.bandwidth, links[i].bandwidth) > ALLOWED)
            fail_msg("%g s, %g B/s came out as %.17g, %.17g", links[i].latency, links[i].bandwidth, found.latency,
                     found.bandwidth);
        assert_true(fit_measure(points, count, &found).max <= 2 * ALLOWED);
    }
}

static double sum_of_squares(const fit_point *points, size_t count, const tsr_link *link)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        const double error = fit_seconds(link, points[i].bytes) / points[i].seconds - 1;
        sum += error * error;
    }
    return sum;
}

/* Points whose times differ from a line by up to a factor of 2. */
static size_t scattered_points(fit_point *points)
{
    static const double factors[SIZES] = {2, 0.5, 1.25, 1, 0.75, 1.5, 0.625, 1.75, 2, 1, 0.5};
    const tsr_link link = {1e-6, 1e10};
    const size_t count = exact_points(&link, points);
    for (size_t i = 0; i < count; i++)
        points[i].seconds *= factors[i];
    return count;
}

static void no_link_nearby_has_a_smaller_sum_of_squared_relative_errors(void **state)
{
    (void)state;
    fit_point points[SIZES];
    tsr_link best;
    const size_t count = scattered_points(points);
    assert_true(fit_link(points, count, &best));
    const double least = sum_of_squares(points, count, &best);
    for (int a = -1; a <= 1; a++) {
        for (int b = -1; b <= 1; b++) {
            const tsr_link other = {best.latency * (1 + a * 1e-3), best.bandwidth * (1 + b * 1e-3)};
            if ((a != 0 || b != 0) && sum_of_squares(points, count, &other) <= least)
                fail_msg("%g, %g is no worse than %g, %g", other.latency, other.bandwidth, best.latency,
                         best.bandwidth);
        }
    }
}

static void a_latency_that_would_be_negative_is_none(void **state)
{
    (void)state;
    /* A line through (1, 1) and (3, 5) begins at -1. Without latency, b = (1/1 + 3/5) / (1 + 9/25)
     * is best: 1.6 / 1.36.
     */
    const fit_point points[] = {{1, 1}, {3, 5}};
    tsr_link found;
    assert_true(fit_link(points, 2, &found));
    assert_true(found.latency == 0);
    assert_true(near_one(found.bandwidth, 1.36 / 1.6) < 8 * DBL_EPSILON);
}

static void points_that_tell_of_no_bandwidth_are_refused(void **state)
{
    (void)state;
    tsr_link found = {7, 8};
    const fit_point same[] = {{64, 1e-6}, {64, 2e-6}, {64, 3e-6}}, falling[] = {{64, 2e-6}, {4096, 1e-6}},
                    level[] = {{1, 1}, {2, 1}};
    assert_false(fit_link(NULL, 0, &found));
    assert_false(fit_link(same, 1, &found));
    assert_false(fit_link(same, 3, &found));
    assert_false(fit_link(falling, 2, &found));
    assert_false(fit_link(level, 2, &found));
    assert_true(found.latency == 7 && found.bandwidth == 8);
}

static void errors_are_relative_to_the_times(void **state)
{
    (void)state;
    const tsr_link link = {1, 1};
    const fit_point points[] = {{1, 1}, {3, 8}, {1, 2}, {7, 4}};
    /* The model gives 2, 4, 2, 8: errors of 1, 0.5, 0 and 1. */
    const fit_error odd = fit_measure(points, 3, &link), even = fit_measure(points, 4, &link);
    assert_true(odd.median == 0.5 && odd.max == 1);
    assert_true(even.median == 0.75 && even.max == 1);
    assert_true(fit_measure(points + 1, 1, &link).median == 0.5);
}

/* Two exact lines of two points each: 3 + bytes / 2 inside, 1 + bytes between. */
static const fit_point late[] = {{2, 4}, {8, 7}}, early[] = {{1, 2}, {3, 4}};

static void links_between_nodes_begin_no_earlier_than_those_inside_and_their_error_says_so(void **state)
{
    (void)state;
    tsr_cost_profile p = tsr_cost_default();
    fit_error error[2];
    assert_true(fit_profile((link_points){late, 2}, (link_points){early, 2}, &p, error));
    assert_true(near_one(p.inside.latency, 3) < 1e-12 && p.between.latency == p.inside.latency);
    assert_true(near_one(p.inside.bandwidth, 2) < 1e-12 && near_one(p.between.bandwidth, 1) < 1e-12);
    /* No error inside; between nodes, times of 2 and 4 are fitted as 3 + 1 and 3 + 3. */
    assert_true(error[0].max < 1e-12);
    assert_true(near_one(error[1].max, 1) < 1e-12 && near_one(error[1].median, 0.75) < 1e-12);
}

static void links_that_were_not_measured_give_way(void **state)
{
    (void)state;
    tsr_cost_profile p = {{3, 2}, {4, 5}};
    fit_error error[2] = {{9, 9}, {9, 9}};
    assert_true(fit_profile((link_points){NULL, 0}, (link_points){early, 2}, &p, error));
    assert_true(near_one(p.between.latency, 1) < 1e-12 && p.inside.latency == p.between.latency &&
                p.inside.bandwidth == 2);
    assert_true(error[0].median == 0 && error[0].max == 0 && error[1].max < 1e-12);
    p = (tsr_cost_profile){{1, 1}, {2, 5}};
    assert_true(fit_profile((link_points){late, 2}, (link_points){NULL, 0}, &p, error));
    assert_true(near_one(p.inside.latency, 3) < 1e-12 && p.between.latency == p.inside.latency &&
                p.between.bandwidth == 5);
    assert_true(error[0].max < 1e-12 && error[1].median == 0 && error[1].max == 0);
}

static void a_profile_stays_as_it_was_where_some_points_tell_of_no_link(void **state)
{
    (void)state;
    static const fit_point level[] = {{1, 1}, {1, 2}};
    tsr_cost_profile p = {{1, 2}, {3, 4}};
    fit_error error[2] = {{5, 6}, {7, 8}};
    assert_false(fit_profile((link_points){late, 2}, (link_points){level, 2}, &p, error));
    assert_false(fit_profile((link_points){level, 2}, (link_points){late, 2}, &p, error));
    assert_true(p.inside.latency == 1 && p.inside.bandwidth == 2 && p.between.latency == 3 && p.between.bandwidth == 4);
    assert_true(error[0].median == 5 && error[0].max == 6 && error[1].median == 7 && error[1].max == 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_on_a_line_give_that_line),
        cmocka_unit_test(no_link_nearby_has_a_smaller_sum_of_squared_relative_errors),
        cmocka_unit_test(a_latency_that_would_be_negative_is_none),
        cmocka_unit_test(points_that_tell_of_no_bandwidth_are_refused),
        cmocka_unit_test(errors_are_relative_to_the_times),
        cmocka_unit_test(links_between_nodes_begin_no_earlier_than_those_inside_and_their_error_says_so),
        cmocka_unit_test(links_that_were_not_measured_give_way),
        cmocka_unit_test(a_profile_stays_as_it_was_where_some_points_tell_of_no_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
