/** Decides when a wait has lasted so long that the log is told of it, and tells it. */
#ifndef TSR_COMM_CORE_LATENESS_H
#define TSR_COMM_CORE_LATENESS_H

#include "comm/core/clock.h"

#include <tessera/sys/comm.h>

/** The arguments of tsr_comm_table.tell_late; `tell` is NULL before that is called. */
typedef struct tsr_late_hook {
    tsr_comm_late *tell;
    void *arg;
} tsr_late_hook;

/** The state of one wait. */
typedef struct tsr_lateness {
    tsr_deadline next;
    int seconds; /**< how long the wait will have lasted at time `next` */
} tsr_lateness;

/** For a wait that has lasted `milliseconds` already, which must be less than
 * TSR_COMM_LATE_SECONDS. */
static inline tsr_lateness tsr_lateness_begin_after(int64_t milliseconds)
{
    return (tsr_lateness){tsr_deadline_in(TSR_COMM_LATE_SECONDS * 1000 - milliseconds), TSR_COMM_LATE_SECONDS};
}

static inline tsr_lateness tsr_lateness_begin(void)
{
    return tsr_lateness_begin_after(0);
}

/** True if it is time to tell the log. */
static inline bool tsr_lateness_is_due(const tsr_lateness *lateness)
{
    return tsr_deadline_passed(lateness->next);
}

/** Puts the next report off until the wait has lasted twice as long. */
static inline void tsr_lateness_defer(tsr_lateness *lateness)
{
    lateness->next = tsr_deadline_in((int64_t)lateness->seconds * 1000);
    lateness->seconds *= 2;
}

/** Reports that the wait is for `ranks`, and puts the next report off. */
static inline void tsr_lateness_tell(tsr_lateness *lateness, const tsr_late_hook *hook, const char *ranks)
{
    if (hook->tell)
        hook->tell(hook->arg, lateness->seconds, ranks);
    tsr_lateness_defer(lateness);
}

#endif
