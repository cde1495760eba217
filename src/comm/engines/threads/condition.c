#include "comm/engines/threads/condition.h"

bool tsr_condition_init(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    pthread_condattr_t monotonic;
    if (pthread_condattr_init(&monotonic) != 0)
        return false;
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    const int failed = pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (failed)
        return false;
    if (pthread_mutex_init(mutex, NULL) == 0)
        return true;
    pthread_cond_destroy(condition);
    return false;
}

void tsr_condition_finish(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    pthread_mutex_destroy(mutex);
    pthread_cond_destroy(condition);
}
