#include "drill.h"

#include <argp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TOLD_AT_MOST = 20 };

struct drill {
    const drill_about *about;
    uint64_t seed;
    int64_t first, count, index, tried, held;
    double seconds, began;
    int64_t told, weight;
    bool failed;
    pthread_mutex_t lock;
};

static drill the_drill = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct argp_option options[] = {
    {"seed", 's', "N", 0, "what all draws depend on (1)", 0},
    {"first", 'f', "N", 0, "the number of the first case (0)", 0},
    {"count", 'c', "N", 0, "how many cases to try", 0},
    {"seconds", 't', "N", 0, "try cases until so many seconds have passed", 0},
    {0},
};

static error_t read_option(int key, char *text, struct argp_state *state)
{
    drill *d = state->input;
    char *end = text;
    const double number = text ? strtod(text, &end) : 0;
    if (text && (*end || end == text || number < 0))
        argp_error(state, "\"%s\" is not a number", text);
    switch (key) {
    case 's':
        d->seed = strtoull(text, NULL, 10);
        return 0;
    case 'f':
        d->first = (int64_t)number;
        return 0;
    case 'c':
        d->count = (int64_t)number;
        return 0;
    case 't':
        d->seconds = number;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

double drill_now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

/* Prints the hanging case and ends the process, since its threads cannot be ended. */
static void hangs(int signal)
{
    (void)signal;
    const drill *d = &the_drill;
    char line[200];
    const int length =
        snprintf(line, sizeof line, "drill %s: seed %llu, case %lld: not over after %u s\n", d->about->name,
                 (unsigned long long)d->seed, (long long)d->index, d->about->case_seconds);
    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        _exit(2);
    _exit(1);
}

drill *drill_begin(int argc, char **argv, const drill_about *about)
{
    drill *d = &the_drill;
    d->about = about;
    d->seed = 1;
    d->count = -1;
    const struct argp parser = {options, read_option, NULL, about->promise, NULL, NULL, NULL};
    argp_parse(&parser, argc, argv, 0, NULL, d);
    if (d->count < 0)
        d->count = d->seconds > 0 ? INT64_MAX - d->first : about->cases;
    d->index = d->first - 1;
    d->began = drill_now();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = hangs;
    sigaction(SIGALRM, &action, NULL);
    return d;
}

void drill_limit(drill *d, int64_t cases)
{
    const int64_t left = d->first < cases ? cases - d->first : 0;
    d->count = d->count < left ? d->count : left;
}

static void end_case(drill *d)
{
    d->tried += d->weight;
    d->held += d->failed ? 0 : d->weight;
    d->weight = 0;
    d->failed = false;
}

bool drill_next(drill *d, int64_t *index)
{
    end_case(d);
    if (d->index + 1 - d->first >= d->count || (d->seconds > 0 && drill_now() - d->began >= d->seconds)) {
        alarm(0);
        return false;
    }
    d->weight = 1;
    *index = ++d->index;
    alarm(d->about->case_seconds);
    return true;
}

void drill_weigh(drill *d, int64_t tries)
{
    d->weight = tries;
}

void drill_fail(drill *d, const char *format, ...)
{
    pthread_mutex_lock(&d->lock);
    d->failed = true;
    if (d->told++ < TOLD_AT_MOST) {
        va_list arguments;
        va_start(arguments, format);
        fprintf(stderr, "drill %s: seed %llu, case %lld: ", d->about->name, (unsigned long long)d->seed,
                (long long)d->index);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
    }
    pthread_mutex_unlock(&d->lock);
}

int drill_end(drill *d)
{
    end_case(d);
    printf("{\"drill\": \"%s\", \"promise\": \"%s\", \"tried\": %lld, \"held\": %lld, \"seed\": %llu, \"seconds\": "
           "%.1f}\n",
           d->about->name, d->about->promise, (long long)d->tried, (long long)d->held, (unsigned long long)d->seed,
           drill_now() - d->began);
    return d->held != d->tried || d->tried == 0;
}

uint64_t drill_seed(const drill *d)
{
    return d->seed;
}

uint64_t drill_draw(drill_draws *draws)
{
    uint64_t z = draws->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

drill_draws drill_draws_of(uint64_t seed, uint64_t index)
{
    drill_draws draws = {seed};
    draws.state = drill_draw(&draws) ^ index * UINT64_C(0xd1342543de82ef95);
    drill_draw(&draws);
    return draws;
}

int64_t drill_below(drill_draws *draws, int64_t end)
{
    return (int64_t)(drill_draw(draws) % (uint64_t)end);
}

bool drill_one_in(drill_draws *draws, int64_t times)
{
    return drill_below(draws, times) == 0;
}

long drill_resident(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*d %ld", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
