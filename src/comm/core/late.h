/** What the log is told of a call that waits long, whatever the engine. */
#ifndef TSR_COMM_CORE_LATE_H
#define TSR_COMM_CORE_LATE_H

#include "comm/core/object.h"

/** A tsr_comm_late: `comm` is a tsr_comm in whose call the calling thread waits. Logs, at level error, for whom and in what. */
void tsr_comm_tell_late(void *comm, int seconds, const char *ranks);

#endif
