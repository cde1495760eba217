/** A mutex and a condition variable whose waits end at a tsr_deadline (comm/core/clock.h). */
#ifndef TSR_COMM_ENGINES_THREADS_CONDITION_H
#define TSR_COMM_ENGINES_THREADS_CONDITION_H

#include "comm/core/clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

/** Makes both and returns true, or makes neither and returns false, for lack of memory. */
bool tsr_condition_init(pthread_cond_t *condition, pthread_mutex_t *mutex);
void tsr_condition_finish(pthread_cond_t *condition, pthread_mutex_t *mutex);

/** Waits under the mutex. False if `time` has passed. A cancellation point, as pthread_cond_wait()
 * is. */
static inline bool tsr_condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex, tsr_deadline time)
{
    const int64_t second = INT64_C(1000000000);
    if (time == INT64_MAX)
        return pthread_cond_wait(condition, mutex) == 0;
    const struct timespec until = {.tv_sec = (time_t)(time / second), .tv_nsec = (long)(time % second)};
    return pthread_cond_timedwait(condition, mutex, &until) != ETIMEDOUT;
}

#endif
