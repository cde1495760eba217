/** Support for long tests: a seed and a time budget from the environment, and a watchdog that turns
 * a hang into a failure that names the case. */
#ifndef TESTS_ORACLE_SUPPORT_H
#define TESTS_ORACLE_SUPPORT_H

#include <stdint.h>

/** The seed: TSR_TEST_SEED, else 1. Printed once. */
uint64_t test_seed(void);

/** Seconds that one sweep may take: TSR_TEST_SECONDS, else `fallback`, or a quarter of it if
 * TSR_TEST_THIN is set. */
double test_seconds(double fallback);

/** The step from case to case: 1, or `by` if TSR_TEST_THIN is set, as for builds with
 * sanitizers. */
int64_t test_step(int64_t by);

/** base to the power of exponent: the number of cases of an exhaustive test. */
int64_t test_power(int64_t base, int exponent);

/** Seconds of a monotonic clock. */
double test_now(void);

/** Starts the watchdog: a case that takes longer than `seconds`, times a factor for slow machines,
 * ends the program and prints the case. */
void test_watchdog(unsigned seconds);

/** Begins a case: sets its text, which is copied, and restarts the watchdog's time. One thread at a
 * time. */
void test_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The text of the current case. */
const char *test_case_text(void);

#endif
