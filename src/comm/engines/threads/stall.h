/**
 * The world object, and how a stall is found: all ranks wait in different communicators because
 * they called in different orders.
 *
 * A thread that has slept for a second is in the world's list until it goes on. The world has
 * stalled if the threads of all remaining ranks are in the list, each waits for a member that has
 * not come, and no other thread is going to call for a rank. The last is certain if the process has
 * no other threads. If it has some, they may be anything: then the world has stalled when nothing
 * has changed for `stall_ms`.
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
    tsr_resident *residents; /**< one per rank */
    tsr_team *teams;
    const tsr_team *first; /**< the team of all ranks; NULL once it is freed */
    tsr_bed *beds;         /**< the list: all threads that have slept for a second */
    int left, owners;      /**< ranks that have not returned, and ranks whose own thread is in `beds` */
    int seated; /**< ranks whose thread has not departed: while there are any the world stays, even without teams */
    int64_t threads;            /**< threads in `beds` */
    tsr_deadline look, patient; /**< when to look again, and when a stillness counts as a stall */
    bool told;                  /**< the log was told of the present stillness */
};

/** Locks the world, and disables cancellation of the thread meanwhile: what is called under the
 * lock, such as the allocator, may be a cancellation point. `state`: what lock has returned. */
int tsr_world_lock(tsr_world *world);
void tsr_world_unlock(tsr_world *world, int state);

/** `sleeps` and `rises` of tsr_patience; `world` is a tsr_world. */
void tsr_stall_sleeps(void *world, tsr_bed *bed);
void tsr_stall_rises(void *world, tsr_bed *bed);

/** Under the lock: one rank fewer remains. */
void tsr_stall_depart(tsr_world *world);

#endif
