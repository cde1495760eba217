#include "hosts/ggml/worker.h"

#include <pthread.h>
#include <stdlib.h>

struct tsr_ggml_worker {
    pthread_t thread;
    pthread_mutex_t guard; /* of all below */
    pthread_cond_t given;
    pthread_cond_t idle;
    tsr_ggml_job *first;
    tsr_ggml_job *last;
    int running; /* a job is under way */
    int ending;
};

/* The next job; NULL: there are no more, and the worker ends. Called with the guard. */
static tsr_ggml_job *next_job(tsr_ggml_worker *worker)
{
    while (!worker->first && !worker->ending)
        pthread_cond_wait(&worker->given, &worker->guard);
    tsr_ggml_job *const job = worker->first;
    if (job)
        worker->first = job->next;
    worker->running = job != NULL;
    return job;
}

static void *work(void *arg)
{
    tsr_ggml_worker *const worker = arg;
    tsr_ggml_job *job;
    pthread_mutex_lock(&worker->guard);
    while ((job = next_job(worker)) != NULL) {
        pthread_mutex_unlock(&worker->guard);
        job->run(job);
        pthread_mutex_lock(&worker->guard);
        worker->running = 0;
        if (!worker->first)
            pthread_cond_broadcast(&worker->idle);
    }
    pthread_mutex_unlock(&worker->guard);
    return NULL;
}

tsr_ggml_worker *tsr_ggml_worker_create(const cpu_set_t *processors)
{
    pthread_attr_t attributes;
    tsr_ggml_worker *const worker = calloc(1, sizeof *worker);
    if (!worker || pthread_attr_init(&attributes) != 0) {
        free(worker);
        return NULL;
    }
    pthread_mutex_init(&worker->guard, NULL);
    pthread_cond_init(&worker->given, NULL);
    pthread_cond_init(&worker->idle, NULL);
    (void)pthread_attr_setaffinity_np(&attributes, sizeof *processors, processors);
    const int failed = pthread_create(&worker->thread, &attributes, work, worker);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free(worker);
        return NULL;
    }
    return worker;
}

void tsr_ggml_worker_give(tsr_ggml_worker *worker, tsr_ggml_job *job)
{
    job->next = NULL;
    pthread_mutex_lock(&worker->guard);
    if (worker->first)
        worker->last->next = job;
    else
        worker->first = job;
    worker->last = job;
    pthread_cond_signal(&worker->given);
    pthread_mutex_unlock(&worker->guard);
}

void tsr_ggml_worker_wait(tsr_ggml_worker *worker)
{
    pthread_mutex_lock(&worker->guard);
    while (worker->first || worker->running)
        pthread_cond_wait(&worker->idle, &worker->guard);
    pthread_mutex_unlock(&worker->guard);
}

void tsr_ggml_worker_destroy(tsr_ggml_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->guard);
    worker->ending = 1;
    pthread_cond_signal(&worker->given);
    pthread_mutex_unlock(&worker->guard);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->idle);
    pthread_cond_destroy(&worker->given);
    pthread_mutex_destroy(&worker->guard);
    free(worker);
}
