/* Timing of moves, and the answer to the harness, for the peers in C. */
#ifndef PEERS_TIMING_H
#define PEERS_TIMING_H

#include <stdio.h>
#include <time.h>

/** Seconds of a sample, a loop of calls, or one call if that takes longer; the number of loops
 * before the first sample, after two calls of which the second tells how many fill a loop; and the
 * upper bound of the calls of a loop. */
#define SAMPLE_SECONDS 0.02
#define WARM_LOOPS     4
#define MOST_CALLS     10000000

static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** The number of calls in a sample, if a call takes `seconds`. */
static inline int calls_in_sample(double seconds)
{
    const double calls = seconds > 0 ? SAMPLE_SECONDS / seconds : MOST_CALLS;
    return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

/** Prints the line that the harness reads. */
static inline void print_answer(const double *seconds, int samples, long long wrong)
{
    printf("{\"seconds\": [");
    for (int i = 0; i < samples; i++)
        printf("%s%.9g", i > 0 ? ", " : "", seconds[i]);
    printf("], \"wrong\": %lld}\n", wrong);
}

#endif
