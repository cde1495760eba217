/* How the peers in C time a move, and what they print. */
#ifndef PEERS_TIMING_H
#define PEERS_TIMING_H

#include <stdio.h>
#include <time.h>

/** A sample is a loop of calls that takes about so long, or one call that takes longer. Two calls, of which the second says how many fill
 * a loop, and so many loops come before the first sample. */
#define SAMPLE_SECONDS 0.02
#define WARM_LOOPS     4
#define MOST_CALLS     10000000

static inline double clock_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/** How many calls fill a sample, where one takes so long. */
static inline int calls_in_sample(double seconds)
{
    const double calls = seconds > 0 ? SAMPLE_SECONDS / seconds : MOST_CALLS;
    return calls < 1 ? 1 : calls > MOST_CALLS ? MOST_CALLS : (int)calls;
}

/** The one line that the harness reads. */
static inline void print_answer(const double *seconds, int samples, long long wrong)
{
    printf("{\"seconds\": [");
    for (int i = 0; i < samples; i++)
        printf("%s%.9g", i > 0 ? ", " : "", seconds[i]);
    printf("], \"wrong\": %lld}\n", wrong);
}

#endif
