#include "teams.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* One rank's part in the round. */
typedef struct member {
    tsr_xla_seat seat;
    bool been; /* it has joined the round */
} member;

struct tsr_xla_team {
    tsr_xla_team *next;
    int64_t run;
    int64_t opened;   /* how many rounds the teams had opened before this one */
    int been, inside; /* ranks that have joined the round, and that have not left it */
    bool failed;      /* a rank has failed in the round; the team is not used again */
    int culprit;      /* the rank that aborted it; -1: none */
    int64_t forgets;  /* when a failed round without ranks is given up, in ns */
    tsr_kept_sentence why;
    member members[];
};

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* When `timeout_ms` has passed, or a minute with 0. */
static int64_t end_of(int64_t timeout_ms)
{
    const int64_t now = now_ns(), ms = timeout_ms ? timeout_ms : 60000;
    return ms < (INT64_MAX - now) / 1000000 ? now + ms * 1000000 : INT64_MAX;
}

tsr_status tsr_xla_teams_begin(tsr_context *context, int ranks, int64_t timeout_ms, void (*end)(void *work),
                               tsr_xla_teams *out)
{
    *out = (tsr_xla_teams){.context = context, .ranks = ranks, .timeout_ms = timeout_ms, .end = end};
    if (pthread_mutex_init(&out->gate, NULL) != 0)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a lock");
    return TSR_OK;
}

static void end_team(tsr_xla_teams *teams, tsr_xla_team *team)
{
    for (int r = 0; r < teams->ranks; r++) {
        if (team->members[r].seat.work)
            teams->end(team->members[r].seat.work);
        tsr_comm_destroy(team->members[r].seat.comm);
    }
    tsr_release(teams->context, team);
}

void tsr_xla_teams_end(tsr_xla_teams *teams)
{
    while (teams->first) {
        tsr_xla_team *const team = teams->first;
        teams->first = team->next;
        end_team(teams, team);
    }
    pthread_mutex_destroy(&teams->gate);
}

static tsr_status make_comms(const tsr_xla_teams *teams, tsr_xla_team *team, tsr_comm **comms)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = teams->context;
    options.timeout_ms = teams->timeout_ms;
    TSR_TRY(tsr_comm_create_threads(teams->ranks, &options, comms));
    for (int r = 0; r < teams->ranks; r++)
        team->members[r].seat.comm = comms[r];
    return TSR_OK;
}

static tsr_status make_team(tsr_xla_teams *teams, tsr_xla_team **out)
{
    void *memory, *comms;
    const size_t bytes = sizeof(tsr_xla_team) + (size_t)teams->ranks * sizeof(member);
    TSR_TRY(tsr_allocate(teams->context, bytes, &memory));
    memset(memory, 0, bytes);
    tsr_status status = tsr_allocate(teams->context, (size_t)teams->ranks * sizeof(tsr_comm *), &comms);
    if (status == TSR_OK) {
        status = make_comms(teams, memory, comms);
        tsr_release(teams->context, comms);
    }
    if (status == TSR_OK)
        *out = memory;
    else
        tsr_release(teams->context, memory);
    return status;
}

static void open_round(tsr_xla_teams *teams, tsr_xla_team *team, int64_t run)
{
    team->run = run;
    team->opened = teams->opened++;
    team->been = 0;
    team->failed = false;
    team->culprit = -1;
    for (int r = 0; r < teams->ranks; r++)
        team->members[r].been = false;
}

static bool is_over(const tsr_xla_teams *teams, const tsr_xla_team *team)
{
    return team->inside == 0 && (team->been == 0 || team->been == teams->ranks);
}

/* A failed round that nobody is in, and for which no rank will come any more: the rank that asks
 * has been in it and begins another one, or the time is over. */
static bool is_stale(const tsr_xla_team *team, int64_t run, int rank)
{
    return team->inside == 0 && team->failed &&
           ((team->run == run && team->members[rank].been) || now_ns() > team->forgets);
}

/* Takes the stale rounds' teams off the list, into `*out`. */
static void take_stale(tsr_xla_teams *teams, int64_t run, int rank, tsr_xla_team **out)
{
    for (tsr_xla_team **at = &teams->first; *at;) {
        tsr_xla_team *const team = *at;
        if (is_stale(team, run, rank)) {
            *at = team->next;
            team->next = *out;
            *out = team;
        } else {
            at = &team->next;
        }
    }
}

/* The rank's next round: of those of its run the first one opened, so that all ranks take them in
 * one order, also a rank that is turns of a loop behind. */
static tsr_xla_team *find_team(tsr_xla_teams *teams, int64_t run, int rank)
{
    tsr_xla_team *over = NULL, *next = NULL;
    for (tsr_xla_team *team = teams->first; team; team = team->next) {
        if (is_over(teams, team))
            over = team;
        else if (team->run == run && !team->members[rank].been && (!next || team->opened < next->opened))
            next = team;
    }
    if (!next && over)
        open_round(teams, over, run);
    return next ? next : over;
}

tsr_status tsr_xla_teams_join(tsr_xla_teams *teams, int64_t run, int rank, tsr_xla_team **team)
{
    tsr_xla_team *stale = NULL, *found;
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&teams->gate);
    take_stale(teams, run, rank, &stale);
    found = find_team(teams, run, rank);
    if (!found) {
        status = make_team(teams, &found);
        if (status == TSR_OK) {
            open_round(teams, found, run);
            found->next = teams->first;
            teams->first = found;
        }
    }
    if (status == TSR_OK) {
        found->members[rank].been = true;
        found->been++;
        found->inside++;
        *team = found;
    }
    pthread_mutex_unlock(&teams->gate);
    while (stale) {
        found = stale;
        stale = stale->next;
        end_team(teams, found);
    }
    return status;
}

tsr_xla_seat *tsr_xla_team_seat(tsr_xla_team *team, int rank)
{
    return &team->members[rank].seat;
}

void tsr_xla_team_abort(tsr_xla_teams *teams, tsr_xla_team *team, int rank)
{
    pthread_mutex_lock(&teams->gate);
    if (team->culprit < 0) {
        team->culprit = rank;
        tsr_status_keep(&team->why);
    }
    pthread_mutex_unlock(&teams->gate);
    tsr_comm_abort(team->members[rank].seat.comm);
}

tsr_status tsr_xla_teams_leave(tsr_xla_teams *teams, tsr_xla_team *team, int rank, tsr_status status)
{
    bool over = false;
    pthread_mutex_lock(&teams->gate);
    team->inside--;
    if (status != TSR_OK) {
        team->failed = true;
        team->forgets = end_of(teams->timeout_ms);
        if (status == TSR_ERROR_PEER && team->culprit >= 0 && team->culprit != rank)
            status = tsr_status_set(TSR_ERROR_PEER, "rank %d failed: %s", team->culprit, team->why.text);
    }
    /* Ranks that are late by now would wait in vain for those that gave up; they open a round of
     * their own. Ranks that have yet to hear of an abort find the round. */
    if (team->failed && team->inside == 0 && (team->culprit < 0 || team->been == teams->ranks)) {
        over = true;
        tsr_xla_team **at = &teams->first;
        while (*at != team)
            at = &(*at)->next;
        *at = team->next;
    }
    pthread_mutex_unlock(&teams->gate);
    if (over) {
        tsr_kept_sentence kept;
        tsr_status_keep(&kept);
        end_team(teams, team);
        tsr_status_restore(&kept, status);
    }
    return status;
}
