/** A lock and a condition under it, whose waits end by the clock of deadlines (comm/clock.h). */
#ifndef TSR_COMM_ENGINES_THREADS_CONDITION_H
#define TSR_COMM_ENGINES_THREADS_CONDITION_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#include "comm/core/clock.h"

/** Makes both, or neither and false: there is no memory. */
bool tsr_condition_init(pthread_cond_t *condition, pthread_mutex_t *mutex);
void tsr_condition_finish(pthread_cond_t *condition, pthread_mutex_t *mutex);

/** Under the mutex; false if the time has passed. A cancellation point, as pthread_cond_wait() is. */
static inline bool tsr_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, tsr_deadline time)
{
    const int64_t second = INT64_C(1000000000);
    if (time == INT64_MAX)
        return pthread_cond_wait(condition, mutex) == 0;
    const struct timespec until = {.tv_sec = (time_t)(time / second), .tv_nsec = (long)(time % second)};
    return pthread_cond_timedwait(condition, mutex, &until) != ETIMEDOUT;
}

#endif
