/* Ranks that leave, make other calls, abort or come late, with and without a storm of signals: no
 * rank hangs, and all get an error. */
#include "calls.h"
#include "drill.h"
#include "storm.h"

#include <tessera/tessera.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 6, ROUNDS = 40, SENTENCE = 300, GROWTH_KILOBYTES = 65536, TIMEOUT_MS = 30, PATIENCE_SECONDS = 40 };

typedef struct trial trial;

/* A scenario: what the ranks do, and a check of the result. */
typedef struct scenario {
    const char *name;
    tsr_status (*body)(trial *t, tsr_comm *comm, drill_draws *own);
    void (*check)(trial *t, tsr_status status);
    int64_t timeout_ms;
} scenario;

struct trial {
    drill *d;
    const scenario *scenario;
    drill_draws shared; /* equal on every rank */
    uint64_t seed;
    int ranks, culprit, round; /* the culprit, and the round of its fault */
    tsr_status status[MOST_RANKS];
    char sentence[MOST_RANKS][SENTENCE];
    bool left[MOST_RANKS];
    atomic_int failed; /* number of ranks that got an error about a peer */
};

/* Calls. */

/* Makes the calls of a correct program until one fails, at most `stop`. */
static tsr_status call_all(const trial *t, tsr_comm *comm, int stop)
{
    drill_draws shared = t->shared;
    tsr_status status = TSR_OK;
    for (int i = 0; i < stop && status == TSR_OK; i++)
        status = make_call(comm, drill_below(&shared, CALLS));
    return status;
}

/* Checks that a broken communicator stays broken. */
static tsr_status still_broken(trial *t, tsr_comm *comm, tsr_status before)
{
    const tsr_status status = tsr_comm_barrier(comm);
    if (status != TSR_ERROR_PEER)
        drill_fail(t->d, "%s: a call after \"%s\" is %s", t->scenario->name, tsr_status_name(before),
                   tsr_status_name(status));
    return status;
}

/* Scenarios. */

static tsr_status stay(trial *t, tsr_comm *comm, drill_draws *own)
{
    (void)own;
    return call_all(t, comm, ROUNDS);
}

static tsr_status leave(trial *t, tsr_comm *comm, drill_draws *own)
{
    const int rank = tsr_comm_rank(comm);
    t->left[rank] = drill_one_in(own, 3);
    const tsr_status status = call_all(t, comm, t->left[rank] ? (int)drill_below(own, ROUNDS) : ROUNDS);
    if (status != TSR_OK || !t->left[rank])
        return status;
    return drill_one_in(own, 2) ? TSR_OK : TSR_ERROR_IO;
}

/* Makes some calls that differ from the peers', or over another communicator. */
static tsr_status mistake(trial *t, tsr_comm *comm, drill_draws *own)
{
    drill_draws shared = t->shared;
    tsr_comm *other = NULL;
    tsr_status status = tsr_comm_split(comm, 0, tsr_comm_rank(comm), &other);
    for (int i = 0; i < ROUNDS && status == TSR_OK; i++) {
        int64_t which = drill_below(&shared, CALLS);
        which = drill_one_in(own, 30) ? drill_below(own, CALLS) : which;
        status = make_call(drill_one_in(own, 60) ? other : comm, which);
        if (status == TSR_ERROR_ARGUMENT)
            status = TSR_OK;
    }
    tsr_comm_destroy(other);
    return status;
}

static tsr_status abort_all(trial *t, tsr_comm *comm, drill_draws *own)
{
    (void)own;
    tsr_status status = call_all(t, comm, t->round);
    if (status == TSR_OK && tsr_comm_rank(comm) == t->culprit)
        tsr_comm_abort(comm);
    if (status == TSR_OK)
        status = call_all(t, comm, 3 * ROUNDS);
    return still_broken(t, comm, status);
}

static void sleep_a_little(void)
{
    const struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

/* The culprit comes after its peers have given up. */
static tsr_status come_late(trial *t, tsr_comm *comm, drill_draws *own)
{
    (void)own;
    tsr_status status = call_all(t, comm, t->round);
    const double began = drill_now();
    while (status == TSR_OK && tsr_comm_rank(comm) == t->culprit && !t->failed &&
           drill_now() - began < PATIENCE_SECONDS)
        sleep_a_little();
    if (status == TSR_OK)
        status = tsr_comm_barrier(comm);
    t->failed += status != TSR_OK;
    return still_broken(t, comm, status);
}

/* Checks. */

static void check_rank(trial *t, int rank, unsigned allowed)
{
    const tsr_status status = t->status[rank];
    if (!(allowed >> status & 1) || (status != TSR_OK && !*t->sentence[rank] && !t->left[rank]))
        drill_fail(t->d, "%s, rank %d of %d: %s: \"%s\"", t->scenario->name, rank, t->ranks, tsr_status_name(status),
                   t->sentence[rank]);
}

static void check_run(trial *t, tsr_status status, unsigned allowed)
{
    if (!(allowed >> status & 1))
        drill_fail(t->d, "%s, %d ranks: the run is %s: \"%s\"", t->scenario->name, t->ranks, tsr_status_name(status),
                   tsr_status_message());
}

enum { MAY_BE_OK = 1u << TSR_OK, MAY_BE_PEER = 1u << TSR_ERROR_PEER, MAY_BE_IO = 1u << TSR_ERROR_IO };

static void all_stay(trial *t, tsr_status status)
{
    for (int r = 0; r < t->ranks; r++)
        check_rank(t, r, MAY_BE_OK);
    check_run(t, status, MAY_BE_OK);
}

static void some_left(trial *t, tsr_status status)
{
    bool own = false, any = false;
    for (int r = 0; r < t->ranks; r++) {
        any = any || t->left[r];
        own = own || t->status[r] == TSR_ERROR_IO;
    }
    for (int r = 0; r < t->ranks; r++)
        check_rank(t, r, any ? MAY_BE_OK | MAY_BE_PEER | (t->left[r] ? MAY_BE_IO : 0) : MAY_BE_OK);
    check_run(t, status, own ? MAY_BE_IO : any ? MAY_BE_OK | MAY_BE_PEER : MAY_BE_OK);
}

static void some_mistook(trial *t, tsr_status status)
{
    for (int r = 0; r < t->ranks; r++)
        check_rank(t, r, MAY_BE_OK | MAY_BE_PEER);
    check_run(t, status, MAY_BE_OK | MAY_BE_PEER);
}

static void all_broken(trial *t, tsr_status status)
{
    for (int r = 0; r < t->ranks; r++)
        check_rank(t, r, MAY_BE_PEER);
    check_run(t, status, MAY_BE_PEER);
}

static const scenario scenarios[] = {
    {"all stay", stay, all_stay, 0},
    {"some leave", leave, some_left, 0},
    {"some call something else", mistake, some_mistook, 0},
    {"one aborts", abort_all, all_broken, 0},
    {"one comes late", come_late, all_broken, TIMEOUT_MS},
};

/* A case. */

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    trial *t = arg;
    const int rank = tsr_comm_rank(comm);
    drill_draws own = drill_draws_of(t->seed, (uint64_t)rank);
    storm_enter();
    const tsr_status status = t->scenario->body(t, comm, &own);
    storm_leave();
    t->status[rank] = status;
    if (status != TSR_OK && status != TSR_ERROR_IO)
        snprintf(t->sentence[rank], SENTENCE, "%s", tsr_status_message());
    return status;
}

static void run_trial(drill *d, int64_t index)
{
    trial t = {.d = d};
    drill_draws draws = drill_draws_of(drill_seed(d), (uint64_t)index);
    const bool storms = drill_one_in(&draws, 2);
    t.scenario = &scenarios[drill_below(&draws, sizeof scenarios / sizeof *scenarios)];
    t.ranks = 2 + (int)drill_below(&draws, MOST_RANKS - 1);
    t.culprit = (int)drill_below(&draws, t.ranks);
    t.round = (int)drill_below(&draws, ROUNDS);
    t.seed = drill_draw(&draws);
    t.shared = draws;
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.timeout_ms = t.scenario->timeout_ms;
    options.spin = drill_one_in(&draws, 2) ? 0 : -1;
    if (storms)
        storm_begin(t.seed);
    const tsr_status status = tsr_threads_run(t.ranks, run_rank, &t, &options);
    if (storms)
        storm_end();
    t.scenario->check(&t, status);
}

int main(int argc, char **argv)
{
    const drill_about about = {
        "departures", "ranks that leave, mistake, abort or come late: nobody hangs, and all others are told", 1000, 60};
    drill *d = drill_begin(argc, argv, &about);
    setenv("TSR_STALL_MS", "1000", 1); /* the library cannot know that the storm's thread calls for no rank */
    int64_t index;
    long resident = 0;
    for (int64_t tried = 0; drill_next(d, &index); tried++) {
        run_trial(d, index);
        if (tried == 100)
            resident = drill_resident();
        if (tried > 100 && drill_resident() > resident + GROWTH_KILOBYTES)
            drill_fail(d, "%ld kB more than at first", drill_resident() - resident);
    }
    return drill_end(d);
}
