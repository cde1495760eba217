/** An execution in which ranks read one another's memory. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_DIRECT_H
#define TSR_REDISTRIBUTE_EXECUTE_DIRECT_H

#include "redistribute/execute/execution.h"

/** Copies this rank's whole source shard (`source`), or its whole destination shard, from place
 * `src` to place `dst`. */
tsr_status tsr_execution_copy_whole(const tsr_execution *e, const tsr_item *item, bool source, tsr_place dst,
                                    tsr_place src);

/** The two halves of an execution that is direct or local. `local`: this rank's status so far. */
tsr_status tsr_direct_start(tsr_execution *e, tsr_status local);
tsr_status tsr_direct_finish(tsr_execution *e);

#endif
