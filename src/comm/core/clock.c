#include "comm/core/clock.h"

#include <sched.h>
#include <time.h>

#define NS_PER_MS      1000000
#define YIELDS         200
#define LONGEST_SLEEP  500000
#define SHORTEST_SLEEP 10000

static int64_t read_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000 * NS_PER_MS + time.tv_nsec;
}

tsr_deadline tsr_deadline_in(int64_t timeout_ms)
{
    const int64_t from = read_time();
    if (timeout_ms == 0 || timeout_ms > (INT64_MAX - from) / NS_PER_MS)
        return INT64_MAX;
    return from + timeout_ms * NS_PER_MS;
}

tsr_deadline tsr_deadline_now(void)
{
    return read_time();
}

bool tsr_deadline_passed(tsr_deadline deadline)
{
    return deadline != INT64_MAX && read_time() > deadline;
}

void tsr_pause(int look)
{
    if (look < YIELDS) {
        sched_yield();
        return;
    }
    const int64_t wanted = (int64_t)SHORTEST_SLEEP * (look - YIELDS + 1);
    const struct timespec time = {0, wanted < LONGEST_SLEEP ? wanted : LONGEST_SLEEP};
    nanosleep(&time, NULL);
}
