/**
 * In message mode, ranks usually tell each other before any bytes travel whether all can go on;
 * that costs the host a round trip to all peers. Where it would cost too much, each rank goes on by
 * itself: over communicators with TSR_COMM_UNCHECKED, and with tensors on a device with streams,
 * where an execution only enqueues.
 */
#ifndef TSR_REDISTRIBUTE_EXECUTE_AGREEMENT_H
#define TSR_REDISTRIBUTE_EXECUTE_AGREEMENT_H

#include "redistribute/execute/execution.h"

/** True if ranks tell each other: always over direct communicators, never over those with
 * TSR_COMM_UNCHECKED. Over others it is found from this rank's arguments, since it cannot ask:
 * false if any of its tensors is on a device with streams. A rank without tensors goes by its
 * stream, and by the group's last execution. Message mode only; the execution's plan, group and
 * stream are set. */
bool tsr_execution_is_checked(const tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst);

/** Makes a rank that brings no tensors to its next execution go by `device`, if that has
 * streams. */
void tsr_execution_go_by(const tsr_group *group, tsr_device device);

/** In a checked execution tsr_comm_agree() over its group. In another, TSR_OK or
 * tsr_execution_give_up() if `local` is a failure. */
tsr_status tsr_execution_agree(const tsr_execution *e, tsr_status local);

/** Returns `local`, a failure of this rank alone, with its sentence. In an execution that is not
 * checked, peers would wait for this rank, so it aborts the communicator. */
tsr_status tsr_execution_give_up(const tsr_execution *e, tsr_status local);

#endif
