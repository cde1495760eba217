/** Deadlines, and the pacing of loops that poll. */
#ifndef TSR_COMM_CORE_CLOCK_H
#define TSR_COMM_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** A time of CLOCK_MONOTONIC in nanoseconds; INT64_MAX: never. */
typedef int64_t tsr_deadline;

/** The time `timeout_ms` milliseconds from now; never, if `timeout_ms` is 0 or the sum
 * overflows. */
tsr_deadline tsr_deadline_in(int64_t timeout_ms);

tsr_deadline tsr_deadline_now(void);

bool tsr_deadline_passed(tsr_deadline deadline);

/** A polling loop calls this before its poll number `look` (from 0). It yields the core at first,
 * since the awaited peer may need it; later it sleeps, longer each time up to a limit. */
void tsr_pause(int look);

#endif
