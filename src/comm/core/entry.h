/**
 * Admits one call at a time to a handle, and no call after tsr_comm_destroy().
 *
 * Every public call that uses a handle enters it first and leaves it before it returns. A second
 * caller, and a caller after tsr_comm_destroy(), gets an error. Functions of src/comm that are not
 * public neither enter nor leave, so calls within the library need no check.
 */
#ifndef TSR_COMM_CORE_ENTRY_H
#define TSR_COMM_CORE_ENTRY_H

#include <tessera/sys/comm.h>

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The first member of a tsr_comm: which call is in flight. A thread writes its own id to `caller`
 * and `holder` after it has got in, and clears them before it lets others in. So a thread that
 * reads its own id there is in the call, or holds the handle: its own writes to one variable are
 * ordered. Ids of other threads that it reads may be out of date.
 */
typedef struct tsr_comm_mark {
    const char *inside; /**< atomic; name of the call in flight, "tsr_comm_barrier", or equal to `held`; NULL: none */
    const char *held;   /**< atomic; name of the call that holds the handle (tsr_comm_hold()), also while it makes no
                           call; NULL: none */
    uintptr_t caller;   /**< atomic; thread that made the call `inside`; 0: none, or not written yet */
    uintptr_t holder;   /**< atomic; thread that holds the handle; 0: none, or not written yet */
    int holds;          /**< how many nested holds the holder has */
    bool closed;        /**< atomic; tsr_comm_destroy() was called */
} tsr_comm_mark;

/** tsr_comm_enter() for a handle that `inside` occupies: enters if this thread holds the handle and
 * has no call in flight on it, else returns TSR_ERROR_STATE. */
tsr_status tsr_comm_enter_taken(tsr_comm *comm, const char *call, const char *inside);

/** An id of the calling thread: never 0, and different from that of every other running thread. */
static inline uintptr_t tsr_this_thread(void)
{
#if defined(__GNUC__) && __GNUC__ >= 11 && !defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
    /* Read from a register; pthread_self() would be a call into another library. */
    return (uintptr_t)__builtin_thread_pointer();
#else
    return (uintptr_t)pthread_self();
#endif
}

/** Enters the handle for `call`, static text. TSR_ERROR_STATE: another call is in flight or the
 * handle is destroyed; it is not entered. */
static inline tsr_status tsr_comm_enter(tsr_comm *comm, const char *call)
{
    tsr_comm_mark *mark = (tsr_comm_mark *)comm;
    const char *inside = NULL;
    if (!__atomic_compare_exchange_n(&mark->inside, &inside, call, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return tsr_comm_enter_taken(comm, call, inside);
    __atomic_store_n(&mark->caller, tsr_this_thread(), __ATOMIC_RELAXED);
    return TSR_OK;
}

/** Leaves the handle. Returns `status`, for the caller to return. */
static inline tsr_status tsr_comm_leave(tsr_comm *comm, tsr_status status)
{
    tsr_comm_mark *mark = (tsr_comm_mark *)comm;
    __atomic_store_n(&mark->caller, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->inside, __atomic_load_n(&mark->held, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
    return status;
}

/** Closes the handle: no call enters any more. If another thread has a call in flight (a mistake of
 * the program), the communicator is aborted and the call waited for, up to 10 s. Returns false, and
 * tells the log, if that call does not end, or at once if the call is this thread's: then the
 * handle stays open and must not be freed. */
bool tsr_comm_close(tsr_comm *comm);

/** For a thread that is being ended: its call in flight over this communicator, or over the one
 * that holds this group, no longer counts as in flight. A call of another thread still does. */
void tsr_comm_forget_call(tsr_comm *comm);

/** False after tsr_comm_destroy(). */
bool tsr_comm_is_open(const tsr_comm *comm);

/** The name of the public call in flight, for the log; NULL: none. */
const char *tsr_comm_call_in_flight(const tsr_comm *comm);

#endif
