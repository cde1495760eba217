#include "base/memory.h"
#include "comm/threads/engine.h"
#include <string.h>

typedef struct run run;

/* One rank's thread and what came of it. */
typedef struct runner {
    run *run;
    tsr_comm *comm;
    int rank;
    pthread_t thread;
    tsr_status status;
    int order; /* among the ranks that failed */
    tsr_kept_sentence sentence;
} runner;

struct run {
    tsr_rank_main *main;
    void *arg;
    pthread_mutex_t gate; /* held until all threads exist */
    bool go;              /* under the gate */
    atomic_int failures;
};

static bool wait_at_gate(run *shared)
{
    pthread_mutex_lock(&shared->gate);
    const bool go = shared->go;
    pthread_mutex_unlock(&shared->gate);
    return go;
}

static void *run_rank(void *arg)
{
    runner *mine = arg;
    run *shared = mine->run;
    if (wait_at_gate(shared)) {
        tsr_threads_seat(mine->comm);
        mine->status = shared->main(mine->comm, shared->arg);
        if (mine->status != TSR_OK) {
            mine->order = atomic_fetch_add(&shared->failures, 1);
            tsr_status_keep(&mine->sentence);
        }
    }
    tsr_comm_destroy(mine->comm);
    return NULL;
}

/* A rank that failed because of another one tells less than that one. */
static bool tells_more(const runner *a, const runner *b)
{
    const bool own = a->status != TSR_ERROR_PEER, other_own = b->status != TSR_ERROR_PEER;
    return own != other_own ? own : a->order < b->order;
}

static tsr_status result_of(const runner *runners, int nranks)
{
    const runner *cause = NULL;
    for (int r = 0; r < nranks; r++)
        if (runners[r].status != TSR_OK && (!cause || tells_more(&runners[r], cause)))
            cause = &runners[r];
    if (!cause)
        return TSR_OK;
    const char *words = cause->sentence.text[0] ? cause->sentence.text : tsr_status_name(cause->status);
    return tsr_status_set(cause->status, "rank %d: %s", cause->rank, words);
}

/* Every handle is destroyed by its thread, or here where that never came to be. */
static tsr_status start_and_join(run *shared, runner *runners, tsr_comm *const *handles, int nranks)
{
    int started = 0, error = 0;
    pthread_mutex_lock(&shared->gate);
    for (; started < nranks; started++) {
        runners[started] = (runner){.run = shared, .comm = handles[started], .rank = started};
        error = pthread_create(&runners[started].thread, NULL, run_rank, &runners[started]);
        if (error != 0)
            break;
    }
    shared->go = started == nranks;
    pthread_mutex_unlock(&shared->gate);
    for (int r = started; r < nranks; r++)
        tsr_comm_destroy(handles[r]);
    for (int r = 0; r < started; r++)
        pthread_join(runners[r].thread, NULL);
    if (started < nranks)
        return tsr_status_set(TSR_ERROR_MEMORY, "tsr_threads_run: no thread for rank %d of %d: %s", started, nranks, strerror(error));
    return result_of(runners, nranks);
}

static tsr_status run_ranks(tsr_context *context, run *shared, tsr_comm *const *handles, int nranks)
{
    runner *runners = NULL;
    tsr_status status = tsr_allocate_array(context, (size_t)nranks, sizeof *runners, (void **)&runners);
    if (status != TSR_OK)
        goto destroy_handles;
    if (pthread_mutex_init(&shared->gate, NULL) != 0) {
        status = tsr_status_set(TSR_ERROR_MEMORY, "tsr_threads_run: there is no memory for a lock");
        goto release_runners;
    }
    status = start_and_join(shared, runners, handles, nranks);
    pthread_mutex_destroy(&shared->gate);
    tsr_release(context, runners);
    return status;

release_runners:
    tsr_release(context, runners);
destroy_handles:
    for (int r = 0; r < nranks; r++)
        tsr_comm_destroy(handles[r]);
    return status;
}

tsr_status tsr_threads_run(int nranks, tsr_rank_main *main, void *arg, const tsr_threads_options *options)
{
    if (!main)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_threads_run: main is NULL");
    tsr_comm **handles;
    TSR_TRY(tsr_threads_create("tsr_threads_run", nranks, options, true, &handles));
    tsr_context *context = tsr_context_retain(tsr_comm_context(handles[0]));
    run shared = {.main = main, .arg = arg};
    const tsr_status status = run_ranks(context, &shared, handles, nranks);
    tsr_release(context, handles);
    tsr_context_destroy(context);
    return status;
}
