/** The communicators of a Disco session, whose workers are threads of one process. */
#ifndef TSR_HOSTS_TVM_DISCO_WORLD_H
#define TSR_HOSTS_TVM_DISCO_WORLD_H

#include <tessera/comm.h>

typedef struct tsr_disco_world tsr_disco_world;

/** A worker's own part of a world. */
typedef struct tsr_disco_seat {
    tsr_disco_world *world;
    int id, workers, group_size;
    tsr_comm *all;   /**< all workers */
    tsr_comm *group; /**< those of the worker's group; `all` where there is one group */
} tsr_disco_seat;

/** Makes the communicators of `workers` workers, each of which takes its seat. */
tsr_status tsr_disco_world_create(int workers, tsr_disco_world **out);

/** Takes the seat of worker `id`. Collective over the workers if there are several groups; worker
 * `id` is in group `id / group_size`. The last seat's end destroys the world. */
tsr_status tsr_disco_seat_take(tsr_disco_world *world, int id, int group_size, tsr_disco_seat **out);

/** Gives a seat back; NULL is fine. */
void tsr_disco_seat_leave(tsr_disco_seat *seat);

/** The communicator of this worker and `peer` alone, in which the worker with the lower number is
 * rank 0. Does not wait for the peer. TSR_ERROR_PEER: the peer has given its seat back. */
tsr_status tsr_disco_seat_pair(const tsr_disco_seat *seat, int peer, tsr_comm **out);

#endif
