/**
 * Where threads wait for one another: a barrier that can be broken.
 *
 * Every member counts its arrivals in a line of its own and waits until nobody's count is below its own. A member that finds itself last
 * wakes those who sleep. Breaking decides, for all members alike, which arrivals still count as complete: a member that leaves has
 * completed what all had reached, and nothing after. Thread-safe.
 */
#ifndef TSR_COMM_ENGINES_THREADS_RENDEZVOUS_H
#define TSR_COMM_ENGINES_THREADS_RENDEZVOUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tessera/sys/comm.h>

#include "comm/core/lateness.h"

#define TSR_REASON_BYTES 384

typedef struct tsr_arrivals {
    _Atomic(uint64_t) count;
    tsr_late_hook late;                                           /**< this member's own to write and read */
    char padding[128 - sizeof(uint64_t) - sizeof(tsr_late_hook)]; /* two lines: processors fetch them in pairs */
} tsr_arrivals;

typedef struct tsr_rendezvous tsr_rendezvous;

/** A thread that has slept for a second while it waited: in the list of its world until it goes on. */
typedef struct tsr_bed {
    tsr_rendezvous *where;
    uint64_t arrival; /**< for which it waits */
    int rank;         /**< of the world, for which it calls */
    int owner;        /**< the rank whose main the thread runs, or -1 */
    bool listed;
    struct tsr_bed *next, *previous;
} tsr_bed;

/** How members wait, and whom they tell when that takes long. */
typedef struct tsr_patience {
    int64_t looks;      /**< before a member sleeps */
    bool crowded;       /**< more threads than cores: let others run between two looks */
    int64_t timeout_ms; /**< 0: for ever */
    /** Called without locks by a thread that sleeps: after each second, which may break the rendezvous, and if it was called when the
     * thread goes on, or is ended. Both NULL: nobody is told. */
    void (*sleeps)(void *world, tsr_bed *bed);
    void (*rises)(void *world, tsr_bed *bed);
    void *world;
} tsr_patience;

struct tsr_rendezvous {
    int count;
    const tsr_patience *patience;
    const int *ranks; /**< ranks of the members in the world */
    tsr_arrivals *arrivals;
    atomic_int broken; /**< read on every arrival, hardly ever written */
    atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex, valid once broken: */
    uint64_t completed;
    char reason[TSR_REASON_BYTES];
};

/** `arrivals` has `count` zeroed elements and stays the caller's, as do `patience` and `ranks`. */
tsr_status tsr_rendezvous_init(tsr_rendezvous *rendezvous, int count, tsr_arrivals *arrivals, const int *ranks,
                               const tsr_patience *patience);
void tsr_rendezvous_finish(tsr_rendezvous *rendezvous);

/** Arrives and waits for the others. TSR_ERROR_PEER says why it is broken. A thread that is cancelled while it sleeps here breaks it. */
tsr_status tsr_rendezvous_meet(tsr_rendezvous *rendezvous, int member);

/** The two halves of that: to arrive is not to wait. */
void tsr_rendezvous_arrive(tsr_rendezvous *rendezvous, int member);
tsr_status tsr_rendezvous_await(tsr_rendezvous *rendezvous, int member);

/** Breaks it for good; the first reason stays. */
void tsr_rendezvous_break(tsr_rendezvous *rendezvous, const char *reason);

/** True if `arrival` waits for somebody who has not come, and nothing broke. */
bool tsr_rendezvous_is_waiting(tsr_rendezvous *rendezvous, uint64_t arrival);

/** "rank 1", or "rank 1 (rank 3 of all)". `text` has 64 bytes. */
const char *tsr_rendezvous_name(const tsr_rendezvous *rendezvous, int member, char *text);

#endif
