#include "support.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char case_text[1024] = "no case yet";
static unsigned limit;

uint64_t test_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("TSR_TEST_SEED");
        seed = text ? strtoull(text, NULL, 0) : 1;
        fprintf(stderr, "seed %llu (set TSR_TEST_SEED for another)\n", (unsigned long long)seed);
    }
    return seed;
}

double test_seconds(double fallback)
{
    const char *text = getenv("TSR_TEST_SECONDS");
    if (text)
        return atof(text);
    return getenv("TSR_TEST_THIN") ? fallback / 4 : fallback;
}

int64_t test_step(int64_t by)
{
    return getenv("TSR_TEST_THIN") ? by : 1;
}

int64_t test_power(int64_t base, int exponent)
{
    return exponent == 0 ? 1 : base * test_power(base, exponent - 1);
}

double test_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void late(int signal_number)
{
    (void)signal_number;
    static const char head[] = "\nhangs: ";
    if (write(2, head, sizeof head - 1) < 0 || write(2, case_text, strlen(case_text)) < 0 || write(2, "\n", 1) < 0)
        _exit(4);
    _exit(3);
}

/* Limits are multiplied: cases usually take a hundredth of them, but may take much longer on a busy
 * machine and under sanitizers. */
void test_watchdog(unsigned seconds)
{
    limit = seconds * (getenv("TSR_TEST_THIN") ? 20 : 5);
    signal(SIGALRM, late);
    alarm(limit);
}

void test_case(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(case_text, sizeof case_text, format, arguments);
    va_end(arguments);
    if (limit > 0)
        alarm(limit);
}

const char *test_case_text(void)
{
    return case_text;
}
