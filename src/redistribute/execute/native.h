/** An execution as a collective that the engine has of its own. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_NATIVE_H
#define TSR_REDISTRIBUTE_EXECUTE_NATIVE_H

#include "redistribute/execute/execution.h"

/** The two halves of the execution. `local`: this rank's status so far. */
tsr_status tsr_native_start(tsr_execution *e, tsr_status local);
tsr_status tsr_native_finish(tsr_execution *e);

#endif
