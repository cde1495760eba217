/** An execution by messages. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_MESSAGE_H
#define TSR_REDISTRIBUTE_EXECUTE_MESSAGE_H

#include "redistribute/execute/execution.h"

/** The two halves of the execution. `local`: this rank's status so far. */
tsr_status tsr_message_start(tsr_execution *e, tsr_status local);
tsr_status tsr_message_finish(tsr_execution *e);

#endif
