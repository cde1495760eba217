/** How waits that look again and again are paced and end. */
#ifndef TSR_COMM_CORE_CLOCK_H
#define TSR_COMM_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/** Nanoseconds of a monotonic clock. */
typedef int64_t tsr_deadline;

/** `timeout_ms` from now; 0 or too far away: never. */
tsr_deadline tsr_deadline_in(int64_t timeout_ms);

tsr_deadline tsr_deadline_now(void);

bool tsr_deadline_passed(tsr_deadline deadline);

/** Before look number `look` (from 0) at what has not come: yields at first, for whoever is waited for may need the core, then sleeps. */
void tsr_pause(int look);

#endif
