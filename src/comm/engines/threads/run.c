#include "base/memory/memory.h"
#include "base/text/text.h"
#include "comm/core/entry.h"
#include "comm/core/lateness.h"
#include "comm/engines/threads/condition.h"
#include "comm/engines/threads/engine.h"
#include "comm/engines/threads/process.h"

#include <tessera/sys/log.h>

#include <string.h>

/* The failure that tsr_threads_run() returns, and the rank that had it. */
typedef struct cause {
    tsr_status status;
    int rank;
    tsr_kept_sentence sentence;
} cause;

typedef struct run {
    tsr_rank_main *main;
    void *arg;
    pthread_mutex_t gate; /* held until all threads and handles exist */
    pthread_cond_t ended; /* signalled when a rank has ended */
    /* Under the gate: */
    tsr_comm **handles; /* one per rank; NULL: they could not be made, so threads end at once */
    cause cause;        /* its status is TSR_OK as long as no rank has failed */
    int running;        /* ranks whose main has not ended */
} run;

/* One rank's thread. */
typedef struct runner {
    run *run;
    int rank;
    pthread_t thread;
    bool ended; /* under the gate */
} runner;

/* One rank, from the call of its main on. */
typedef struct turn {
    run *run;
    runner *runner;
    tsr_comm *comm;
    tsr_world *world;
    int rank;
    bool returned;
} turn;

/* Keeps a rank's failure as the cause if it is the first, or the first that is not TSR_ERROR_PEER:
 * a failure for a reason of its own says more than one because of a peer. */
static void tell_cause(run *shared, int rank, tsr_status status)
{
    cause *told = &shared->cause;
    pthread_mutex_lock(&shared->gate);
    if (told->status == TSR_OK || (told->status == TSR_ERROR_PEER && status != TSR_ERROR_PEER)) {
        told->status = status;
        told->rank = rank;
        tsr_status_keep_returned(&told->sentence, status);
    }
    pthread_mutex_unlock(&shared->gate);
}

/* Runs at the end of a rank's thread, however that ends. */
static void end_turn(void *arg)
{
    const turn *mine = arg;
    if (!mine->returned) {
        tsr_world_unseat(mine->world, mine->rank);
        tell_cause(mine->run, mine->rank,
                   tsr_status_set(TSR_ERROR_STATE,
                                  "main did not return, for its thread was ended (pthread_exit or cancellation)"));
    }
    /* This ends a tsr_comm_hold() that main did not end, too. */
    tsr_comm_forget_call(mine->comm);
    tsr_comm_destroy(mine->comm);
    tsr_comm_release(mine->comm);
    tsr_world_depart(mine->world, mine->rank);
    pthread_mutex_lock(&mine->run->gate);
    mine->runner->ended = true;
    mine->run->running--;
    pthread_cond_signal(&mine->run->ended);
    pthread_mutex_unlock(&mine->run->gate);
}

static void run_main(turn *mine)
{
    const tsr_status status = mine->run->main(mine->comm, mine->run->arg);
    mine->returned = true;
    if (status != TSR_OK)
        tell_cause(mine->run, mine->rank, status);
}

static tsr_comm *wait_at_gate(run *shared, int rank)
{
    pthread_mutex_lock(&shared->gate);
    tsr_comm *comm = shared->handles ? shared->handles[rank] : NULL;
    pthread_mutex_unlock(&shared->gate);
    return comm;
}

static void *run_rank(void *arg)
{
    runner *started = arg;
    turn mine = {started->run, started, wait_at_gate(started->run, started->rank), NULL, started->rank, false};
    if (!mine.comm)
        return NULL;
    /* Main may destroy its handle, which is used afterwards. */
    tsr_comm_retain(mine.comm);
    mine.world = tsr_threads_seat(mine.comm);
    pthread_cleanup_push(end_turn, &mine);
    run_main(&mine);
    pthread_cleanup_pop(1);
    return NULL;
}

/* Starts one thread per rank. Returns how many could be started, with `*error` if not all. */
static int start_threads(run *shared, runner *runners, int nranks, int *error)
{
    for (int r = 0; r < nranks; r++) {
        runners[r] = (runner){.run = shared, .rank = r};
        *error = pthread_create(&runners[r].thread, NULL, run_rank, &runners[r]);
        if (*error != 0)
            return r;
    }
    return nranks;
}

/* For at most this many ranks it does not pay to read the system's limits. */
#define FEW_THREADS 1000

/* Refuses more ranks than the system allows threads. Trying to start them would leave all other
 * processes without threads meanwhile. */
static tsr_status check_limits(int nranks)
{
    const int64_t most = nranks > FEW_THREADS ? tsr_process_most_threads() : 0;
    if (most == 0 || nranks <= most)
        return TSR_OK;
    return tsr_status_set(
        TSR_ERROR_MEMORY,
        "tsr_threads_run: %d ranks take a thread each, but the system gives all processes no more than %lld "
        "(kernel.pid_max, kernel.threads-max): run fewer ranks, or raise these",
        nranks, (long long)most);
}

/* A line of the log names at most this many ranks. */
#define RANKS_NAMED 8

/* Under the gate, which it unlocks while the log's sink is called. */
static void tell_late(run *shared, const runner *runners, int nranks, const tsr_context *context, int seconds)
{
    const cause told = shared->cause;
    char words[256] = "";
    tsr_text text = {words, sizeof words, 0};
    int named = 0;
    for (int r = 0; r < nranks && named < RANKS_NAMED; r++)
        if (!runners[r].ended)
            tsr_text_append(&text, "%s%d", named++ ? ", " : "", r);
    if (shared->running > named)
        tsr_text_append(&text, " and %d more", shared->running - named);
    pthread_mutex_unlock(&shared->gate);
    tsr_log(context, TSR_LOG_ERROR,
            "tsr_threads_run: rank %d has failed (%s), and %d s later these ranks have not returned: %s", told.rank,
            told.sentence.text, seconds, words);
    pthread_mutex_lock(&shared->gate);
}

/* Waits for all ranks, however long that takes. Once a rank has failed, the log is told if the
 * others are late to return. */
static void await_ranks(run *shared, const runner *runners, int nranks, const tsr_context *context)
{
    tsr_lateness late = {INT64_MAX, 0};
    pthread_mutex_lock(&shared->gate);
    while (shared->running > 0) {
        if (shared->cause.status != TSR_OK && late.seconds == 0)
            late = tsr_lateness_begin();
        if (tsr_lateness_is_due(&late)) {
            const int seconds = late.seconds;
            tsr_lateness_defer(&late);
            tell_late(shared, runners, nranks, context, seconds);
        } else {
            tsr_condition_wait(&shared->ended, &shared->gate, late.next);
        }
    }
    pthread_mutex_unlock(&shared->gate);
}

/* Starts the threads first, so that a lack of threads shows before anything is allocated for
 * ranks. */
static tsr_status start_and_join(run *shared, runner *runners, int nranks, const tsr_threads_options *options)
{
    tsr_comm **handles = NULL;
    tsr_status status = TSR_OK;
    int error = 0;
    pthread_mutex_lock(&shared->gate);
    const int started = start_threads(shared, runners, nranks, &error);
    if (started < nranks)
        status = tsr_status_set(TSR_ERROR_MEMORY,
                                "tsr_threads_run: %d ranks take a thread each, but the system gave no more than %d "
                                "(%s): run fewer ranks, or "
                                "raise its limits on threads, mappings and memory",
                                nranks, started, strerror(error));
    else
        status = tsr_threads_create(nranks, options, true, &handles);
    shared->handles = handles;
    shared->running = handles ? nranks : 0;
    pthread_mutex_unlock(&shared->gate);
    await_ranks(shared, runners, nranks, options->context);
    for (int r = 0; r < started; r++)
        pthread_join(runners[r].thread, NULL);
    tsr_release(options->context, handles);
    if (status != TSR_OK || shared->cause.status == TSR_OK)
        return status;
    return tsr_status_set(shared->cause.status, "rank %d: %s", shared->cause.rank, shared->cause.sentence.text);
}

static tsr_status run_ranks(run *shared, int nranks, const tsr_threads_options *options)
{
    runner *runners;
    TSR_TRY(check_limits(nranks));
    TSR_TRY(tsr_allocate_array(options->context, (size_t)nranks, sizeof *runners, (void **)&runners));
    tsr_status status;
    if (tsr_condition_init(&shared->ended, &shared->gate)) {
        status = start_and_join(shared, runners, nranks, options);
        tsr_condition_finish(&shared->ended, &shared->gate);
    } else {
        status = tsr_status_set(TSR_ERROR_MEMORY, "tsr_threads_run: there is no memory for a lock");
    }
    tsr_release(options->context, runners);
    return status;
}

tsr_status tsr_threads_run(int nranks, tsr_rank_main *main, void *arg, const tsr_threads_options *options)
{
    tsr_threads_options mine;
    if (!main)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_threads_run: main is NULL");
    TSR_TRY(tsr_threads_decide("tsr_threads_run", nranks, options, &mine));
    run shared = {.main = main, .arg = arg};
    /* Ranks use this stack frame, so this thread is not cancelled until they have ended. The ranks'
     * own threads may be. */
    int state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    const tsr_status status = run_ranks(&shared, nranks, &mine);
    pthread_setcancelstate(state, &state);
    tsr_context_destroy(mine.context);
    return status;
}
