/**
 * One call at a time on a handle, and none after its end.
 *
 * Every public call that uses a handle enters it first and leaves it when it returns. A second caller, or a caller that
 * comes after tsr_comm_destroy(), is refused with a sentence. Calls within the library go on below the mark: functions of
 * src/comm that are not public neither enter nor leave.
 */
#ifndef TSR_COMM_CORE_ENTRY_H
#define TSR_COMM_CORE_ENTRY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tessera/sys/comm.h>

/**
 * The first member of a tsr_comm. A thread writes its own name to `caller` and `holder` after it has got in, and takes it away before it
 * lets others in. So a thread that reads its own name there is in the call, or holds, by the order of its own writes to that one variable;
 * what it reads of other threads may be old.
 */
typedef struct tsr_comm_mark {
    const char *inside; /**< atomic; the call in flight, "tsr_comm_barrier"; NULL: none; `held` between calls of the holder */
    const char *held;   /**< atomic; the call that holds the handle for calls of its own, see tsr_comm_hold(); NULL: none */
    uintptr_t caller;   /**< atomic; the thread of `inside`; 0: none, or not known yet */
    uintptr_t holder;   /**< atomic; the thread of `held`; 0: none, or not known yet */
    int holds;          /**< of that thread, one within the other */
    bool closed;        /**< atomic; tsr_comm_destroy() was called */
} tsr_comm_mark;

/** Where the handle is taken, by `inside`: enters if this thread holds it and is in no call of its own, else words why `call` may not:
 * TSR_ERROR_STATE. */
tsr_status tsr_comm_enter_taken(tsr_comm *comm, const char *call, const char *inside);

/** The same for all calls of one thread, another for each thread that runs. Never 0. */
static inline uintptr_t tsr_this_thread(void)
{
#if defined(__GNUC__) && __GNUC__ >= 11 && !defined(__clang__) && (defined(__x86_64__) || defined(__aarch64__))
    /* A register, where pthread_self() is a call into another library. */
    return (uintptr_t)__builtin_thread_pointer();
#else
    return (uintptr_t)pthread_self();
#endif
}

/** `call` is static text. After anything but TSR_OK the handle is not entered. */
static inline tsr_status tsr_comm_enter(tsr_comm *comm, const char *call)
{
    tsr_comm_mark *mark = (tsr_comm_mark *)comm;
    const char *inside = NULL;
    if (!__atomic_compare_exchange_n(&mark->inside, &inside, call, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return tsr_comm_enter_taken(comm, call, inside);
    __atomic_store_n(&mark->caller, tsr_this_thread(), __ATOMIC_RELAXED);
    return TSR_OK;
}

/** Returns `status`, with which the call ends. */
static inline tsr_status tsr_comm_leave(tsr_comm *comm, tsr_status status)
{
    tsr_comm_mark *mark = (tsr_comm_mark *)comm;
    __atomic_store_n(&mark->caller, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&mark->inside, __atomic_load_n(&mark->held, __ATOMIC_RELAXED), __ATOMIC_RELEASE);
    return status;
}

/** Nothing enters any more. A call that another thread has in flight is a mistake of the caller's: the communicator is aborted, so that the
 * call ends, and waited for. False if it does not end: then its memory must stay. False at once if the call is this thread's. The log is
 * told. */
bool tsr_comm_close(tsr_comm *comm);

/** This thread is ended: its call that is in flight over this communicator, or over the one of which it is a group, does not count any
 * more. A call of another thread stays in flight. */
void tsr_comm_forget_call(tsr_comm *comm);

/** False after tsr_comm_destroy(). */
bool tsr_comm_is_open(const tsr_comm *comm);

/** The public call that is in flight, for the log; NULL: none. */
const char *tsr_comm_call_in_flight(const tsr_comm *comm);

#endif
