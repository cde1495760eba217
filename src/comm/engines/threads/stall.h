/**
 * The world as its files see it, and how a world is found to have stalled: ranks called in different order on different communicators.
 *
 * A thread that has slept for a second is in the world's list, and stays there until it may go on. Where the threads of all ranks that are
 * left are there, each waiting for somebody who does not come, the world has stalled if no other thread is to call for a rank. That is
 * certain where the process has no other thread. Where it has some, they may be anything: the world is given `stall_ms` of stillness.
 */
#ifndef TSR_COMM_ENGINES_THREADS_STALL_H
#define TSR_COMM_ENGINES_THREADS_STALL_H

#include "comm/core/clock.h"
#include "comm/engines/threads/world.h"

typedef struct tsr_resident {
    pthread_t owner; /**< the thread that runs the rank's main */
    bool seated, ended;
} tsr_resident;

struct tsr_world {
    tsr_context *context;
    int count;
    tsr_patience patience;
    int64_t stall_ms;
    pthread_mutex_t lock;
    /* Under the lock: */
    tsr_resident *residents; /**< one a rank */
    tsr_team *teams;
    const tsr_team *first;      /**< the team of all ranks; whoever leaves it has returned */
    tsr_bed *beds;              /**< of all threads that have slept for a second */
    int left, owners;           /**< ranks that have not returned, and those whose own thread has a bed */
    int seated;                 /**< ranks for which the world stays, whatever becomes of their handles */
    int64_t threads;            /**< that have a bed */
    tsr_deadline look, patient; /**< when to look again, and until when nothing may change */
    bool told;                  /**< the log knows of the stillness that ends with `patient` */
};

/** No thread is cancelled with the lock, whatever is called under it, such as the allocator. `state`: what lock has returned. */
int tsr_world_lock(tsr_world *world);
void tsr_world_unlock(tsr_world *world, int state);

/** See tsr_patience; `world` is a tsr_world. */
void tsr_stall_sleeps(void *world, tsr_bed *bed);
void tsr_stall_rises(void *world, tsr_bed *bed);

/** Under the lock: a rank goes. */
void tsr_stall_depart(tsr_world *world);

#endif
