/** The world as its files see it, and how a world is found to have stalled. */
#ifndef TSR_COMM_THREADS_STALL_H
#define TSR_COMM_THREADS_STALL_H

#include "comm/threads/world.h"

struct tsr_world {
    tsr_context *context;
    int count;
    tsr_patience patience;
    tsr_bed *beds; /**< one a rank */
    pthread_mutex_t lock;
    tsr_team *teams;       /**< under the lock */
    const tsr_team *first; /**< the team of all ranks; whoever leaves it has returned */
};

/** Breaks the teams in which ranks sleep if all ranks that are left sleep, each waiting for somebody who does not come: they called in
 * different order on different communicators. `world` is a tsr_world. */
void tsr_world_check_stall(void *world);

#endif
