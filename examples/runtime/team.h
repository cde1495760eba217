/** Ranks that meet: a barrier that can be broken, and what each rank shows to the others. */
#ifndef EXAMPLES_RUNTIME_TEAM_H
#define EXAMPLES_RUNTIME_TEAM_H

#include <tessera/sys/comm.h>

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

/** What the teams of one ranks_create() share; it goes with the last of them. */
typedef struct world {
    tsr_context *context;
    pthread_mutex_t lock; /**< for all fields of worlds and teams that change */
    pthread_cond_t changed;
    int64_t timeout_ms;
    atomic_size_t *meetings;
    int teams;
    int aborted; /**< the rank that has aborted; -1: none */
} world;

/** One member of a team. */
typedef struct place {
    alignas(64) unsigned char slot[TSR_COMM_SLOT_BYTES];
    uint64_t arrivals; /**< how often it has come to a barrier */
    int rank;          /**< in the world, by which sentences name it */
    int color, key;    /**< of a split */
    struct team *made; /**< by the lowest rank of a color, for a split */
} place;

typedef struct team {
    world *world;
    int ranks, seats; /**< members, and those that have not left */
    int arrived;      /**< members that wait for `round` to end */
    uint64_t round;
    char broken[160]; /**< why no barrier is passed any more; "": it is whole */
    place places[];
} team;

/** A team of `ranks`; `numbers` has their ranks in the world, NULL: 0, 1, .. */
tsr_status team_create(world *w, int ranks, const int *numbers, team **out);

/** Member `mine` leaves: others that wait for it, now or later, fail. The team goes with the last
 * one. */
void team_leave(team *t, int mine);

/** Ends every wait in the world. */
void team_abort(team *t, int mine);

/** The two halves of a barrier. */
tsr_status team_arrive(team *t, int mine);
tsr_status team_await(team *t, int mine);

/** Makes a world without teams. */
tsr_status world_create(tsr_context *context, int64_t timeout_ms, atomic_size_t *meetings, world **out);
void world_destroy(world *w);

#endif
