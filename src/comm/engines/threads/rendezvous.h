/**
 * A barrier of threads that can be broken.
 *
 * Every member counts its arrivals in cache lines of its own, and waits until no member's count is
 * below its own. A member that finds itself last wakes the members that sleep. When the barrier
 * breaks, one decision holds for all members: arrivals up to the number that all members have
 * reached are complete, later ones fail. Thread-safe.
 */
#ifndef TSR_COMM_ENGINES_THREADS_RENDEZVOUS_H
#define TSR_COMM_ENGINES_THREADS_RENDEZVOUS_H

#include "comm/core/lateness.h"

#include <tessera/sys/comm.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TSR_REASON_BYTES 384

typedef struct tsr_arrivals {
    _Atomic(uint64_t) count;
    tsr_late_hook late; /**< written and read by this member alone */
    /* to two cache lines: processors fetch them in pairs */
    char padding[128 - sizeof(uint64_t) - sizeof(tsr_late_hook)];
} tsr_arrivals;

typedef struct tsr_rendezvous tsr_rendezvous;

/** A thread that waits. After a second of sleep it is in the list of its world until it goes on. */
typedef struct tsr_bed {
    tsr_rendezvous *where;
    uint64_t arrival; /**< the arrival that the thread waits to be complete */
    int rank;         /**< the rank of the world for which the thread calls */
    int owner;        /**< the rank whose main the thread runs, or -1 */
    bool listed;
    struct tsr_bed *next, *previous;
} tsr_bed;

/** How members wait, and what they call when they wait long. */
typedef struct tsr_patience {
    int64_t looks;      /**< polls before a member sleeps */
    bool crowded;       /**< more ranks than cores: a member yields its core after each poll */
    int64_t timeout_ms; /**< how long a member waits; 0: for ever */
    /** Both or neither are NULL. A sleeping thread calls `sleeps`, without locks, after each
     * second; that may break the rendezvous. If `sleeps` has listed its bed, the thread calls
     * `rises` when it goes on or is cancelled. */
    void (*sleeps)(void *world, tsr_bed *bed);
    void (*rises)(void *world, tsr_bed *bed);
    void *world;
} tsr_patience;

struct tsr_rendezvous {
    int count;
    const tsr_patience *patience;
    const int *ranks; /**< one per member: its rank in the world */
    tsr_arrivals *arrivals;
    atomic_int broken; /**< 0, or 1 for good; read on every arrival */
    atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    /* Under the mutex, valid once broken: */
    uint64_t completed;
    char reason[TSR_REASON_BYTES];
};

/** `arrivals` has `count` elements that are 0. The caller keeps it, `patience` and `ranks` until
 * the rendezvous is finished. */
tsr_status tsr_rendezvous_init(tsr_rendezvous *rendezvous, int count, tsr_arrivals *arrivals, const int *ranks,
                               const tsr_patience *patience);
void tsr_rendezvous_finish(tsr_rendezvous *rendezvous);

/** Arrives and waits for all members. TSR_ERROR_PEER: the rendezvous is broken; the sentence says
 * why. If a thread is cancelled while it sleeps here, the rendezvous breaks. */
tsr_status tsr_rendezvous_meet(tsr_rendezvous *rendezvous, int member);

/** The two halves of tsr_rendezvous_meet(); arrive does not wait. */
void tsr_rendezvous_arrive(tsr_rendezvous *rendezvous, int member);
tsr_status tsr_rendezvous_await(tsr_rendezvous *rendezvous, int member);

/** Breaks the rendezvous for good. Only the first reason is kept. */
void tsr_rendezvous_break(tsr_rendezvous *rendezvous, const char *reason);

/** True if a member has not reached `arrival` yet and the rendezvous is not broken. */
bool tsr_rendezvous_is_waiting(tsr_rendezvous *rendezvous, uint64_t arrival);

/** A member's name in sentences: "rank 1", or "rank 1 (rank 3 of all)" if it has another rank in
 * the world. Writes it to `text`, 64 bytes, and returns that. */
const char *tsr_rendezvous_name(const tsr_rendezvous *rendezvous, int member, char *text);

#endif
