/**
 * Where threads wait for one another: a barrier that can be broken.
 *
 * Every member counts its arrivals in a line of its own and waits until nobody's count is below its own. A member that finds itself last
 * wakes those who sleep. Breaking decides, for all members alike, which arrivals still count as complete: a member that leaves has
 * completed what all had reached, and nothing after. Thread-safe.
 */
#ifndef TSR_COMM_THREADS_RENDEZVOUS_H
#define TSR_COMM_THREADS_RENDEZVOUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tessera/context.h>
#include <tessera/sys/status.h>

#define TSR_REASON_BYTES 256

typedef struct tsr_arrivals {
    _Atomic(uint64_t) count;
    char padding[128 - sizeof(uint64_t)]; /* two lines: processors fetch them in pairs */
} tsr_arrivals;

/** How members wait, and whom they tell when that takes long. */
typedef struct tsr_patience {
    int64_t looks;      /**< before a member sleeps */
    bool crowded;       /**< more threads than cores: let others run between two looks */
    int64_t timeout_ms; /**< 0: for ever */
    /** Called by a member that has slept for a second, without locks; may break the rendezvous. NULL: nobody is told. */
    void (*stalled)(void *world);
    void *world;
} tsr_patience;

typedef struct tsr_rendezvous tsr_rendezvous;

/** Where a rank sleeps, for whoever looks whether all do. `naps` is odd exactly while the rest holds. */
typedef struct tsr_bed {
    _Atomic(uint64_t) naps;
    _Atomic(tsr_rendezvous *) where;
    _Atomic(int) member;
    pthread_t owner; /**< only its naps are shown */
    bool shown;
    /* Under the world's lock: */
    bool gone;
    uint64_t seen; /**< of `naps`, by who looks */
} tsr_bed;

struct tsr_rendezvous {
    int count;
    const tsr_patience *patience;
    const int *ranks; /**< ranks of the members in the world, for words; NULL where they are the same */
    tsr_bed *beds;    /**< one a rank of the world */
    tsr_arrivals *arrivals;
    atomic_int broken; /**< read on every arrival, hardly ever written */
    atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex, valid once broken: */
    uint64_t completed;
    char reason[TSR_REASON_BYTES];
};

/** `arrivals` has `count` zeroed elements and stays the caller's, as do `patience`, `ranks` and `beds`. */
tsr_status tsr_rendezvous_init(tsr_rendezvous *rendezvous, int count, tsr_arrivals *arrivals, const int *ranks,
                               const tsr_patience *patience, tsr_bed *beds);
void tsr_rendezvous_finish(tsr_rendezvous *rendezvous);

/** Arrives and waits for the others. TSR_ERROR_PEER says why it is broken. */
tsr_status tsr_rendezvous_meet(tsr_rendezvous *rendezvous, int member);

/** The two halves of that: to arrive is not to wait. */
void tsr_rendezvous_arrive(tsr_rendezvous *rendezvous, int member);
tsr_status tsr_rendezvous_await(tsr_rendezvous *rendezvous, int member);

/** Breaks it for good; the first reason stays. */
void tsr_rendezvous_break(tsr_rendezvous *rendezvous, const char *reason);

/** True if `member` waits for somebody who has not come, and nothing broke. */
bool tsr_rendezvous_is_waiting(tsr_rendezvous *rendezvous, int member);

/** "rank 1", or "rank 1 (rank 3 of all)". `text` has 64 bytes. */
const char *tsr_rendezvous_name(const tsr_rendezvous *rendezvous, int member, char *text);

#endif
