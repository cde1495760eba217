/* The fit of a profile's entries for kernels to times in bench calibrate. */
#include <bench/calibrate/kernels.h>
#include <command.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int complain(int status, const char *format, ...)
{
    (void)format;
    return status;
}

int complain_status(int status)
{
    return status;
}

#define LINKS "inside=1e-6,1e9 between=5e-6,1e9 step=2e-7"

static const char known[] = LINKS " call=4e-7 pass=24576:2e10,1048576:5e9 multiply@1=65536:8e9,16777216:4e9 "
                                  "multiply@64=65536:6e10,16777216:1.2e11 attend@1=65536:5e9 attend@512=1048576:4e10";

static tsr_profile *parse(const char *text)
{
    tsr_profile *profile = NULL;
    assert_int_equal(tsr_profile_parse(text, &profile), TSR_OK);
    return profile;
}

/* Calls that measure each entry of `known`, the rows of products in turns, and three between. */
static void add_all(kernels *k)
{
    static const kernel_call_point points[] = {
        {.topic = KERNEL_CALL, .fitted = true, .least = 1},
        {.topic = KERNEL_PASS, .fitted = true, .least = 1, .touched = 24576},
        {.topic = KERNEL_PASS, .fitted = true, .least = 1, .touched = 1048576},
        {.topic = KERNEL_MULTIPLY, .fitted = true, .least = 1, .touched = 65536, .flops = 1e6},
        {.topic = KERNEL_MULTIPLY, .fitted = true, .least = 64, .touched = 65536, .flops = 1e6},
        {.topic = KERNEL_MULTIPLY, .fitted = true, .least = 1, .touched = 16777216, .flops = 1e8},
        {.topic = KERNEL_MULTIPLY, .fitted = true, .least = 64, .touched = 16777216, .flops = 1e9},
        {.topic = KERNEL_ATTEND, .fitted = true, .least = 1, .touched = 65536, .flops = 1e6},
        {.topic = KERNEL_ATTEND, .fitted = true, .least = 512, .touched = 1048576, .flops = 1e8},
        {.topic = KERNEL_PASS, .least = 1, .touched = 200000},
        {.topic = KERNEL_MULTIPLY, .least = 20, .touched = 500000, .flops = 1e8},
        {.topic = KERNEL_ATTEND, .least = 100, .touched = 500000, .flops = 1e8},
    };
    tsr_profile *const profile = parse(known);
    k->count = sizeof points / sizeof points[0];
    memcpy(k->points, points, sizeof points);
    for (size_t i = 0; i < k->count; i++)
        k->points[i].seconds.median = i == 0 ? 4e-7 : kernels_seconds(&k->points[i], profile);
    tsr_profile_destroy(profile);
}

static tsr_profile *fit(const kernels *k, const char *links)
{
    tsr_profile *const base = parse(links), *found = NULL;
    assert_int_equal(kernels_fit(k, base, &found), EXIT_DONE);
    tsr_profile_destroy(base);
    return found;
}

static void kernels_that_are_so_are_found(void **state)
{
    kernels k;
    size_t count;
    (void)state;
    add_all(&k);
    tsr_profile *const found = fit(&k, LINKS);
    assert_true(tsr_profile_has_tables(found) && tsr_profile_has_kernels(found));
    const fit_error error = kernels_error(&k, found, &count);
    assert_int_equal(count, 3);
    assert_true(error.max < 0.01 && error.median <= error.max);
    for (size_t i = 1; i < k.count; i++)
        assert_true(fabs(kernels_seconds(&k.points[i], found) / k.points[i].seconds.median - 1) < 0.01);
    tsr_profile_destroy(found);
}

static void calls_that_were_not_fitted_tell_the_error(void **state)
{
    kernels k;
    size_t count;
    (void)state;
    add_all(&k);
    tsr_profile *const found = fit(&k, LINKS);
    k.points[9].seconds.median *= 2;
    k.points[10].seconds.median /= 1.25;
    k.points[11].seconds.median /= 1.1;
    const fit_error error = kernels_error(&k, found, &count);
    assert_true(fabs(error.max - 0.5) < 0.01 && fabs(error.median - 0.25) < 0.02);
    tsr_profile_destroy(found);
}

static void what_a_device_lacks_has_no_entry(void **state)
{
    kernels k;
    size_t count;
    char text[512];
    (void)state;
    add_all(&k);
    for (size_t i = 0; i < k.count; i++)
        if (k.points[i].topic != KERNEL_PASS)
            k.points[i].seconds.median = 0;
    tsr_profile *found = fit(&k, "");
    tsr_profile_print(found, text, sizeof text);
    assert_non_null(strstr(text, "\npass=24576:"));
    assert_null(strstr(text, "call"));
    assert_null(strstr(text, "@"));
    kernels_error(&k, found, &count);
    assert_int_equal(count, 1);
    tsr_profile_destroy(found);
    k.count = 0;
    found = fit(&k, "");
    assert_false(tsr_profile_has_kernels(found));
    assert_true(kernels_error(&k, found, &count).max == 0 && count == 0);
    tsr_profile_destroy(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_that_are_so_are_found),
        cmocka_unit_test(calls_that_were_not_fitted_tell_the_error),
        cmocka_unit_test(what_a_device_lacks_has_no_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
