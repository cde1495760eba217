/** Tells the log of calls that wait long, for all engines. */
#ifndef TSR_COMM_CORE_LATE_H
#define TSR_COMM_CORE_LATE_H

#include "comm/core/object.h"

/** A tsr_comm_late whose argument is a tsr_comm: the calling thread waits in a call over it. Logs,
 * at level error, for which ranks and in which call. */
void tsr_comm_tell_late(void *comm, int seconds, const char *ranks);

#endif
