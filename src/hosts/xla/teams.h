/* Where the devices of a call meet.
 *
 * A team is a communicator of threads with a seat for each rank. It serves one round at a time: one
 * call of every rank in one run. A rank joins the first open round of its run in which it has not
 * been, or opens a round with a free team, or with a new one; so rounds of several runs, and of
 * turns of a loop that ranks reach at different times, never mix. A round that failed is closed
 * once all ranks have been there, and its team ends. */
#ifndef TSR_HOSTS_XLA_TEAMS_H
#define TSR_HOSTS_XLA_TEAMS_H

#include <tessera/comm.h>

#include <pthread.h>

/* What a rank keeps between rounds: `work` is its user's, which `end` frees. */
typedef struct tsr_xla_seat {
    tsr_comm *comm;
    void *work;
} tsr_xla_seat;

typedef struct tsr_xla_team tsr_xla_team;

/* The teams of a call site. */
typedef struct tsr_xla_teams {
    tsr_context *context; /* borrowed */
    int ranks;
    int64_t timeout_ms;
    void (*end)(void *work); /* NULL is fine for it */
    pthread_mutex_t gate;    /* held for what the teams' rounds hold */
    tsr_xla_team *first;
    int64_t opened; /* rounds so far */
} tsr_xla_teams;

tsr_status tsr_xla_teams_begin(tsr_context *context, int ranks, int64_t timeout_ms, void (*end)(void *work),
                               tsr_xla_teams *out);

/* Frees all teams; no rank is in a round. */
void tsr_xla_teams_end(tsr_xla_teams *teams);

/* The round of `rank` in run `run`. */
tsr_status tsr_xla_teams_join(tsr_xla_teams *teams, int64_t run, int rank, tsr_xla_team **team);

tsr_xla_seat *tsr_xla_team_seat(tsr_xla_team *team, int rank);

/* Ends every wait of the round: `rank` has failed with this thread's sentence, and cannot tell its
 * peers by the communicator. */
void tsr_xla_team_abort(tsr_xla_teams *teams, tsr_xla_team *team, int rank);

/* Leaves the round. Returns `status`; where it is TSR_ERROR_PEER since another rank aborted the
 * round, with that rank's sentence. */
tsr_status tsr_xla_teams_leave(tsr_xla_teams *teams, tsr_xla_team *team, int rank, tsr_status status);

#endif
