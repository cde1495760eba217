/* Ranks whose thread ends within a program: by pthread_exit(), or cancelled, awake or asleep in a
 * call. Peers do not hang. */
#include "calls.h"
#include "drill.h"

#include <tessera/tessera.h>

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_RANKS = 6, ROUNDS = 30, SENTENCE = 300 };

typedef enum ending { EXITS, CANCELS_ITSELF, IS_CANCELLED, ENDINGS } ending;

typedef struct trial {
    drill *d;
    drill_draws shared;
    ending how;
    int ranks, victim, round;
    long delay_microseconds;
    pthread_t thread;
    atomic_int begun;
    tsr_status status[MOST_RANKS];
    char sentence[MOST_RANKS][SENTENCE];
} trial;

static void pass_time(long microseconds)
{
    const struct timespec time = {0, microseconds * 1000};
    nanosleep(&time, NULL);
}

static tsr_status call_on(trial *t, tsr_comm *comm, int rounds)
{
    drill_draws draws = t->shared;
    tsr_status status = TSR_OK;
    for (int i = 0; i < rounds && status == TSR_OK; i++) {
        pthread_testcancel();
        status = make_call(comm, drill_below(&draws, CALLS));
    }
    return status;
}

/* Makes calls until its thread ends: it sleeps in a call that not all peers make, or is cancelled
 * within a call. */
static tsr_status be_victim(trial *t, tsr_comm *comm)
{
    t->thread = pthread_self();
    t->begun = 1;
    const tsr_status status = call_on(t, comm, t->how == IS_CANCELLED ? INT_MAX : t->round);
    if (t->how == EXITS)
        pthread_exit(NULL);
    pthread_cancel(pthread_self());
    pthread_testcancel();
    return status;
}

/* Cancels the victim, on rank 0 or 1, which makes no calls meanwhile, so that the other ranks
 * sleep. */
static void cancel_victim(trial *t)
{
    while (!t->begun)
        pass_time(100);
    pass_time(t->delay_microseconds);
    pthread_cancel(t->thread);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    trial *t = arg;
    const int rank = tsr_comm_rank(comm);
    if (rank == t->victim)
        return be_victim(t, comm);
    if (t->how == IS_CANCELLED && rank == (t->victim == 0))
        cancel_victim(t);
    t->status[rank] = call_on(t, comm, INT_MAX);
    snprintf(t->sentence[rank], SENTENCE, "%s", tsr_status_message());
    return t->status[rank];
}

static void check(trial *t, tsr_status status)
{
    static const char *const ways[] = {"pthread_exit()", "cancelled by itself", "cancelled by a peer"};
    char victim[32];
    bool named = false;
    snprintf(victim, sizeof victim, "rank %d ", t->victim);
    for (int r = 0; r < t->ranks; r++) {
        if (r == t->victim)
            continue;
        named = named || strstr(t->sentence[r], victim);
        if (t->status[r] != TSR_ERROR_PEER || !*t->sentence[r])
            drill_fail(t->d, "%s: rank %d of %d: %s: \"%s\"", ways[t->how], r, t->ranks, tsr_status_name(t->status[r]),
                       t->sentence[r]);
    }
    if (!named)
        drill_fail(t->d, "%s: nobody names %s", ways[t->how], victim);
    if (status == TSR_OK || !*tsr_status_message())
        drill_fail(t->d, "%s: the run is %s: \"%s\"", ways[t->how], tsr_status_name(status), tsr_status_message());
}

int main(int argc, char **argv)
{
    const drill_about about = {
        "endings", "a rank whose thread exits or is cancelled: nobody hangs, and its peers are told", 500, 60};
    drill *d = drill_begin(argc, argv, &about);
    int64_t index;
    while (drill_next(d, &index)) {
        drill_draws draws = drill_draws_of(drill_seed(d), (uint64_t)index);
        trial t = {.d = d};
        t.how = (ending)drill_below(&draws, ENDINGS);
        t.ranks = 2 + (int)drill_below(&draws, MOST_RANKS - 1);
        t.victim = (int)drill_below(&draws, t.ranks);
        t.round = (int)drill_below(&draws, ROUNDS);
        t.delay_microseconds = (long)drill_below(&draws, 20000);
        t.shared = draws;
        check(&t, tsr_threads_run(t.ranks, run_rank, &t, NULL));
    }
    return drill_end(d);
}
