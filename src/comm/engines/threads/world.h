/**
 * Rank threads of one process. A world has all ranks; a team is one communicator over some of them.
 *
 * The first team has all ranks of the world; splits make more. A team is freed with the last of its
 * members' handles. The world is freed when it has no teams and no rank is seated. Everything here
 * may be called from any thread.
 */
#ifndef TSR_COMM_ENGINES_THREADS_WORLD_H
#define TSR_COMM_ENGINES_THREADS_WORLD_H

#include "comm/engines/threads/rendezvous.h"

#include <tessera/sys/comm.h>

typedef struct tsr_world tsr_world;
typedef struct tsr_team tsr_team;

/** What a member shows the others while they split the team. */
typedef struct tsr_post {
    int color, key;
    tsr_team *made; /**< the new team, made by its first member for all its members; NULL if that failed */
} tsr_post;

struct tsr_team {
    tsr_world *world;
    tsr_rendezvous rendezvous;
    int count;
    int handles; /**< members whose handle is there; under the world's lock, as are `next` and `previous` */
    int *ranks;  /**< one per member: its rank in the world */
    void *slots; /**< TSR_COMM_SLOT_BYTES per member */
    void **slot_list;
    tsr_post *posts; /**< one per member */
    void *arrivals;
    tsr_team *next, *previous;
};

/** Makes a world and its first team, which counts `nranks` handles. `watched`: the thread of each
 * rank calls tsr_world_seat(), and a world that has stalled is broken (stall.h). */
tsr_status tsr_world_create(tsr_context *context, int nranks, const tsr_threads_options *options, bool watched,
                            tsr_team **out);

/** The calling thread runs rank `rank` from now on, until tsr_world_depart(); the world stays at
 * least until then. */
void tsr_world_seat(tsr_world *world, int rank);

/** To be called before tsr_world_depart() if the rank's thread ends without having returned from
 * main: sentences for other ranks say so. */
void tsr_world_unseat(tsr_world *world, int rank);

/** A seated rank has ended: breaks every team that it is in, whether its handles were destroyed or
 * not. */
void tsr_world_depart(tsr_world *world, int rank);

/** Makes a team that counts `count` handles; member m is rank ranks[m] of the world, or m if
 * `ranks` is NULL. `ranks` is copied. */
tsr_status tsr_team_create(tsr_world *world, int count, const int *ranks, tsr_team **out);

/** Gives back the handle of `member`, and breaks the team for the other members. Frees the team
 * with its last handle, and the world when it can be freed. */
void tsr_team_leave(tsr_team *team, int member);

/** Gives back `count` handles at once, of a team that no member has used. */
void tsr_team_discard(tsr_team *team, int count);

/** Breaks every team of the world; the reason names `member` of this one. */
void tsr_team_abort(tsr_team *team, int member);

tsr_context *tsr_world_context(tsr_world *world);

#endif
