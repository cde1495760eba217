/**
 * By messages, ranks usually tell each other before any bytes travel whether all can, which takes the host a way to all peers and back.
 * Where that cannot be afforded, each goes on by itself: over communicators with TSR_COMM_UNCHECKED, and with tensors on a device with
 * streams, where an execution only enqueues.
 */
#ifndef TSR_REDISTRIBUTE_EXECUTE_AGREEMENT_H
#define TSR_REDISTRIBUTE_EXECUTE_AGREEMENT_H

#include "redistribute/execute/execution.h"

/** Whether ranks tell each other. Known from what this rank is given, for it cannot ask: any of its tensors on a device with streams says
 * no. A rank without tensors goes by the stream, and by the group's last execution. The execution's plan, group and stream are set, and it
 * goes by messages. */
bool tsr_execution_is_checked(const tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst);

/** tsr_comm_agree() over the execution's group; in an execution that is not checked tsr_execution_give_up(), if `local` is a failure. */
tsr_status tsr_execution_agree(const tsr_execution *e, tsr_status local);

/** Returns `local`, a failure of this rank alone, with its sentence. Where peers are not told they wait for this rank: the communicator is
 * aborted then. */
tsr_status tsr_execution_give_up(const tsr_execution *e, tsr_status local);

#endif
