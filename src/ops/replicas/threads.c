#include "ops/replicas/threads.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Waits for the next job after `turn`. NULL: the thread is to end. */
static tsr_replica_job *await_job(tsr_replicas *r, uint64_t turn)
{
    pthread_mutex_lock(&r->mutex);
    while (r->turn == turn && !r->leaves)
        pthread_cond_wait(&r->begins, &r->mutex);
    tsr_replica_job *const job = r->turn == turn ? NULL : r->job;
    pthread_mutex_unlock(&r->mutex);
    return job;
}

static void *run_jobs(void *arg)
{
    tsr_replica *const mine = arg;
    tsr_replicas *const r = mine->all;
    for (uint64_t turn = 0;; turn++) {
        tsr_replica_job *const job = await_job(r, turn);
        if (!job)
            return NULL;
        job(mine);
        pthread_mutex_lock(&r->mutex);
        if (--r->working == 0)
            pthread_cond_signal(&r->ended);
        pthread_mutex_unlock(&r->mutex);
    }
}

/* Makes the locks, or none of them. */
static bool make_locks(tsr_replicas *r)
{
    if (pthread_mutex_init(&r->mutex, NULL) != 0)
        return false;
    if (pthread_cond_init(&r->begins, NULL) == 0) {
        if (pthread_cond_init(&r->ended, NULL) == 0)
            return true;
        pthread_cond_destroy(&r->begins);
    }
    pthread_mutex_destroy(&r->mutex);
    return false;
}

tsr_status tsr_replicas_start(tsr_replicas *replicas)
{
    replicas->has_locks = make_locks(replicas);
    if (!replicas->has_locks)
        return tsr_status_set(TSR_ERROR_MEMORY, "tsr_replicas_create: there is no memory for a lock");
    for (int i = 0; i < replicas->ranks; i++) {
        const int error = pthread_create(&replicas->replicas[i].thread, NULL, run_jobs, &replicas->replicas[i]);
        if (error != 0)
            return tsr_status_set(TSR_ERROR_MEMORY,
                                  "tsr_replicas_create: %d ranks take a thread each, but the system gave no more than "
                                  "%d (%s): make fewer ranks, or raise its limits on threads and memory",
                                  replicas->ranks, i, strerror(error));
        replicas->started++;
    }
    return TSR_OK;
}

void tsr_replicas_leave(tsr_replicas *replicas)
{
    if (!replicas->has_locks)
        return;
    pthread_mutex_lock(&replicas->mutex);
    replicas->leaves = true;
    pthread_cond_broadcast(&replicas->begins);
    pthread_mutex_unlock(&replicas->mutex);
    for (int i = 0; i < replicas->started; i++)
        pthread_join(replicas->replicas[i].thread, NULL);
    pthread_cond_destroy(&replicas->ended);
    pthread_cond_destroy(&replicas->begins);
    pthread_mutex_destroy(&replicas->mutex);
}

tsr_status tsr_replicas_enter(tsr_replicas *replicas, const char *caller)
{
    if (!replicas)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: replicas is NULL", caller);
    pthread_mutex_lock(&replicas->mutex);
    const bool is_free = !replicas->in_call;
    replicas->in_call = true;
    pthread_mutex_unlock(&replicas->mutex);
    if (!is_free)
        return tsr_status_set(TSR_ERROR_STATE,
                              "%s: another call with these replicas is in flight, and they take one at a time", caller);
    replicas->caller = caller;
    return TSR_OK;
}

tsr_status tsr_replicas_exit(tsr_replicas *replicas, tsr_status status)
{
    pthread_mutex_lock(&replicas->mutex);
    replicas->in_call = false;
    pthread_mutex_unlock(&replicas->mutex);
    return status;
}

void tsr_replicas_work(tsr_replicas *replicas, tsr_replica_job *job)
{
    /* Ranks use the caller's memory, so this thread is not cancelled until they are done. */
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    pthread_mutex_lock(&replicas->mutex);
    replicas->job = job;
    replicas->working = replicas->ranks;
    replicas->turn++;
    pthread_cond_broadcast(&replicas->begins);
    while (replicas->working > 0)
        pthread_cond_wait(&replicas->ended, &replicas->mutex);
    pthread_mutex_unlock(&replicas->mutex);
    pthread_setcancelstate(state, &state);
}
