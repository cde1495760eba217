/**
 * Rank threads of one process: a world of ranks, and teams of them that meet.
 *
 * A team is one communicator: the whole world is the first, splits make more. It belongs to the handles of its members and goes with the
 * last of them; the world goes with its last team, once no rank is seated. Everything here may be called from any thread.
 */
#ifndef TSR_COMM_ENGINES_THREADS_WORLD_H
#define TSR_COMM_ENGINES_THREADS_WORLD_H

#include "comm/engines/threads/rendezvous.h"
#include <tessera/sys/comm.h>

typedef struct tsr_world tsr_world;
typedef struct tsr_team tsr_team;

/** What a member of a team shows to the others while they split it. */
typedef struct tsr_post {
    int color, key;
    tsr_team *made; /**< by the first member of the new team, for all of it; NULL if it could not */
} tsr_post;

struct tsr_team {
    tsr_world *world;
    tsr_rendezvous rendezvous;
    int count;
    int handles; /**< members that are left; under the world's lock, as are the links */
    int *ranks;  /**< of the members in the world, ascending by member */
    void *slots; /**< TSR_COMM_SLOT_BYTES a member */
    void **slot_list;
    tsr_post *posts; /**< one a member */
    void *arrivals;
    tsr_team *next, *previous;
};

/** The world and its first team, which has `nranks` handles. `watched`: ranks are what tsr_world_seat() says, and a world in which all of
 * them sleep where nobody can come any more is broken (stall.h). */
tsr_status tsr_world_create(tsr_context *context, int nranks, const tsr_threads_options *options, bool watched, tsr_team **out);

/** The calling thread is `rank` from now on, until tsr_world_depart(): so long the world stays. */
void tsr_world_seat(tsr_world *world, int rank);

/** It ends without having returned, which others are told. */
void tsr_world_unseat(tsr_world *world, int rank);

/** A seated rank is done, and with it all of its handles that are left: nobody will meet it any more, in any team. */
void tsr_world_depart(tsr_world *world, int rank);

/** A team of `count` members with the ranks `ranks` of the world, and as many handles. */
tsr_status tsr_team_create(tsr_world *world, int count, const int *ranks, tsr_team **out);

/** A handle goes, and with it its member: nobody will meet it any more in this team. Frees what is left without handles. */
void tsr_team_leave(tsr_team *team, int member);

/** Gives back `count` handles at once, of a team that nobody used. */
void tsr_team_discard(tsr_team *team, int count);

/** Breaks every team of the world, on behalf of `member`. */
void tsr_team_abort(tsr_team *team, int member);

tsr_context *tsr_world_context(tsr_world *world);

#endif
