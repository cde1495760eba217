/** When a wait has lasted so long that the log is to hear for whom, and how an engine says it. */
#ifndef TSR_COMM_CORE_LATENESS_H
#define TSR_COMM_CORE_LATENESS_H

#include "comm/core/clock.h"
#include <tessera/sys/comm.h>

/** What tsr_comm_table.tell_late was given; `tell` NULL: nothing yet. */
typedef struct tsr_late_hook {
    tsr_comm_late *tell;
    void *arg;
} tsr_late_hook;

/** Of one wait. */
typedef struct tsr_lateness {
    tsr_deadline next;
    int seconds; /**< that it has lasted at `next` */
} tsr_lateness;

/** Of one that has lasted for so long already, less than TSR_COMM_LATE_SECONDS. */
static inline tsr_lateness tsr_lateness_begin_after(int64_t milliseconds)
{
    return (tsr_lateness){tsr_deadline_in(TSR_COMM_LATE_SECONDS * 1000 - milliseconds), TSR_COMM_LATE_SECONDS};
}

static inline tsr_lateness tsr_lateness_begin(void)
{
    return tsr_lateness_begin_after(0);
}

/** True when it is time to tell. */
static inline bool tsr_lateness_is_due(const tsr_lateness *lateness)
{
    return tsr_deadline_passed(lateness->next);
}

/** Until it has lasted twice as long. */
static inline void tsr_lateness_defer(tsr_lateness *lateness)
{
    lateness->next = tsr_deadline_in((int64_t)lateness->seconds * 1000);
    lateness->seconds *= 2;
}

/** Tells of `ranks`, and defers the next time. */
static inline void tsr_lateness_tell(tsr_lateness *lateness, const tsr_late_hook *hook, const char *ranks)
{
    if (hook->tell)
        hook->tell(hook->arg, lateness->seconds, ranks);
    tsr_lateness_defer(lateness);
}

#endif
