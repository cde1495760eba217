#include "pool.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <pthread.h>
#include <stdbool.h>

struct pool {
    tsr_context *context;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pool_task *first, **last;
    bool closing;
    int threads;
    pthread_t at[];
};

static void *work(void *arg)
{
    pool *const p = arg;
    pthread_mutex_lock(&p->lock);
    while (p->first || !p->closing) {
        pool_task *const task = p->first;
        if (!task) {
            pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        p->first = task->next;
        if (!p->first)
            p->last = &p->first;
        pthread_mutex_unlock(&p->lock);
        task->run(task);
        pthread_mutex_lock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

tsr_status pool_create(tsr_context *context, int threads, pool **out)
{
    void *made;
    TSR_TRY(tsr_allocate(context, sizeof(pool) + (size_t)threads * sizeof(pthread_t), &made));
    pool *const p = made;
    *p = (pool){.context = tsr_context_retain(context), .last = &p->first};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    while (p->threads < threads && pthread_create(&p->at[p->threads], NULL, work, p) == 0)
        p->threads++;
    if (p->threads < threads) {
        pool_destroy(p);
        return tsr_status_set(TSR_ERROR_MEMORY, "pool: there are no %d threads", threads);
    }
    *out = p;
    return TSR_OK;
}

void pool_destroy(pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->closing = true;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    for (int t = 0; t < p->threads; t++)
        pthread_join(p->at[t], NULL);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    tsr_context *const context = p->context;
    tsr_release(context, p);
    tsr_context_destroy(context);
}

int pool_threads(const pool *p)
{
    return p->threads;
}

void pool_begin(pool *p, pool_task *list)
{
    pthread_mutex_lock(&p->lock);
    *p->last = list;
    for (; list; list = list->next)
        p->last = &list->next;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}
