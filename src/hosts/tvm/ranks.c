#include "hosts/tvm/ranks.h"

#include "hosts/tvm/object.h"

#include <tessera/sys/status.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* A rank and its thread. */
typedef struct member {
    struct tsr_tvm_ranks *ranks;
    tsr_comm *comm;
    pthread_t thread;
    tsr_status status; /* of the last job */
    tsr_kept_sentence sentence;
} member;

struct tsr_tvm_ranks {
    atomic_int references;
    int count, threads;         /* threads that have begun; rank 0 has none */
    pthread_mutex_t turn;       /* held by the caller of a job */
    pthread_mutex_t lock;       /* of the fields below */
    pthread_cond_t begun, done; /* a job has begun; the last rank is done */
    uint64_t job;               /* the number of jobs so far */
    int busy;                   /* ranks that are still at the job */
    bool end;
    tsr_status (*body)(tsr_comm *comm, void *arg);
    void *arg;
    member members[];
};

tsr_tvm_ranks *tsr_tvm_ranks_retain(tsr_tvm_ranks *ranks)
{
    atomic_fetch_add_explicit(&ranks->references, 1, memory_order_relaxed);
    return ranks;
}

int tsr_tvm_ranks_count(const tsr_tvm_ranks *ranks)
{
    return ranks->count;
}

tsr_comm *tsr_tvm_ranks_comm(const tsr_tvm_ranks *ranks, int rank)
{
    return ranks->members[rank].comm;
}

static void work(member *m)
{
    m->status = m->ranks->body(m->comm, m->ranks->arg);
    if (m->status != TSR_OK)
        tsr_status_keep_returned(&m->sentence, m->status);
}

static void *serve(void *arg)
{
    member *const m = arg;
    tsr_tvm_ranks *const ranks = m->ranks;
    pthread_mutex_lock(&ranks->lock);
    for (uint64_t seen = 0;; seen++) {
        while (!ranks->end && ranks->job == seen)
            pthread_cond_wait(&ranks->begun, &ranks->lock);
        if (ranks->end)
            break;
        pthread_mutex_unlock(&ranks->lock);
        work(m);
        pthread_mutex_lock(&ranks->lock);
        if (--ranks->busy == 0)
            pthread_cond_signal(&ranks->done);
    }
    pthread_mutex_unlock(&ranks->lock);
    return NULL;
}

/* A rank that failed by itself says more than its peers, which heard of it. */
static tsr_status sum_up(const tsr_tvm_ranks *ranks)
{
    const member *found = NULL;
    for (int r = 0; r < ranks->count; r++) {
        const member *const m = &ranks->members[r];
        if (m->status != TSR_OK && (!found || (found->status == TSR_ERROR_PEER && m->status != TSR_ERROR_PEER)))
            found = m;
    }
    if (!found)
        return TSR_OK;
    return tsr_status_set(found->status, "rank %d: %s", (int)(found - ranks->members), found->sentence.text);
}

tsr_status tsr_tvm_ranks_run(tsr_tvm_ranks *ranks, tsr_status (*body)(tsr_comm *comm, void *arg), void *arg)
{
    pthread_mutex_lock(&ranks->turn);
    pthread_mutex_lock(&ranks->lock);
    ranks->body = body;
    ranks->arg = arg;
    ranks->busy = ranks->threads;
    ranks->job++;
    pthread_cond_broadcast(&ranks->begun);
    pthread_mutex_unlock(&ranks->lock);
    work(&ranks->members[0]);
    pthread_mutex_lock(&ranks->lock);
    while (ranks->busy > 0)
        pthread_cond_wait(&ranks->done, &ranks->lock);
    pthread_mutex_unlock(&ranks->lock);
    const tsr_status status = sum_up(ranks);
    pthread_mutex_unlock(&ranks->turn);
    return status;
}

void tsr_tvm_ranks_destroy(tsr_tvm_ranks *ranks)
{
    if (!ranks || atomic_fetch_sub_explicit(&ranks->references, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_lock(&ranks->lock);
    ranks->end = true;
    pthread_cond_broadcast(&ranks->begun);
    pthread_mutex_unlock(&ranks->lock);
    for (int r = 1; r <= ranks->threads; r++)
        (void)pthread_join(ranks->members[r].thread, NULL);
    for (int r = 0; r < ranks->count; r++)
        tsr_comm_destroy(ranks->members[r].comm);
    pthread_cond_destroy(&ranks->done);
    pthread_cond_destroy(&ranks->begun);
    pthread_mutex_destroy(&ranks->lock);
    pthread_mutex_destroy(&ranks->turn);
    free(ranks);
}

static void destroy_ranks(void *content)
{
    tsr_tvm_ranks_destroy(content);
}

static tsr_status make_comms(tsr_tvm_ranks *ranks, int64_t timeout_ms)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = timeout_ms;
    tsr_comm **const comms = calloc((size_t)ranks->count, sizeof *comms);
    if (!comms)
        return tsr_status_set(TSR_ERROR_MEMORY, "ranks: no memory for %d ranks", ranks->count);
    const tsr_status status = tsr_comm_create_threads(ranks->count, &options, comms);
    for (int r = 0; r < ranks->count; r++) {
        ranks->members[r].ranks = ranks;
        ranks->members[r].comm = comms[r];
    }
    free(comms);
    return status;
}

static tsr_status begin_threads(tsr_tvm_ranks *ranks)
{
    for (int r = 1; r < ranks->count; r++, ranks->threads++)
        if (pthread_create(&ranks->members[r].thread, NULL, serve, &ranks->members[r]) != 0)
            return tsr_status_set(TSR_ERROR_MEMORY, "ranks: no thread for rank %d of %d", r, ranks->count);
    return TSR_OK;
}

tsr_status tsr_tvm_make_ranks(tsr_tvm_call *call)
{
    enum { MOST = 4096 };
    int64_t count, timeout_ms = 0;
    TSR_TRY(tsr_tvm_integer(call, 0, "count", &count));
    if (tsr_tvm_given(call, 1))
        TSR_TRY(tsr_tvm_integer(call, 1, "timeout_ms", &timeout_ms));
    if (count < 1 || count > MOST)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %lld ranks: from 1 to %d are possible", call->name,
                              (long long)count, (int)MOST);
    if (timeout_ms < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: a timeout of %lld ms: it must not be negative", call->name,
                              (long long)timeout_ms);
    tsr_tvm_ranks *const ranks = calloc(1, sizeof *ranks + (size_t)count * sizeof *ranks->members);
    if (!ranks)
        return tsr_status_set(TSR_ERROR_MEMORY, "%s: no memory for %lld ranks", call->name, (long long)count);
    atomic_init(&ranks->references, 1);
    ranks->count = (int)count;
    pthread_mutex_init(&ranks->turn, NULL);
    pthread_mutex_init(&ranks->lock, NULL);
    pthread_cond_init(&ranks->begun, NULL);
    pthread_cond_init(&ranks->done, NULL);
    tsr_status status = make_comms(ranks, timeout_ms);
    if (status == TSR_OK)
        status = begin_threads(ranks);
    if (status == TSR_OK)
        return tsr_tvm_return_object(call, TSR_TVM_RANKS, ranks, destroy_ranks);
    tsr_tvm_ranks_destroy(ranks);
    return status;
}
