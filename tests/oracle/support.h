/** What the long tests share: a settable seed and time budget, and a watchdog that turns a hang into a failure with its case. */
#ifndef TESTS_ORACLE_SUPPORT_H
#define TESTS_ORACLE_SUPPORT_H

#include <stdint.h>

/** TSR_TEST_SEED, else 1. Printed once. */
uint64_t test_seed(void);

/** How long one sweep may take: TSR_TEST_SECONDS, else `fallback`, a quarter of it where TSR_TEST_THIN is set. */
double test_seconds(double fallback);

/** From case to case: 1, or `by` where TSR_TEST_THIN is set, as it is for builds with sanitizers. */
int64_t test_step(int64_t by);

/** How many words of `exponent` letters an alphabet of `base` has: the cases of an exhaustive test. */
int64_t test_power(int64_t base, int exponent);

/** Seconds since some fixed time. */
double test_now(void);

/** From now on, a case that takes longer than `seconds` ends the program with its text. */
void test_watchdog(unsigned seconds);

/** Names the case that runs now and gives it the watchdog's full time; the text is copied. Call it from one thread at a time. */
void test_case(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** The text given last. */
const char *test_case_text(void);

#endif
