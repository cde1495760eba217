/** Collectives in which ranks read one another's memory. */
#ifndef TSR_COMM_COLLECTIVES_DIRECT_H
#define TSR_COMM_COLLECTIVES_DIRECT_H

#include "comm/collectives/collective.h"

/** Carries out a call on which all ranks have agreed, between its begin and its end. */
tsr_status tsr_direct_carry_out(tsr_comm *comm, const tsr_collective *call);

/** Checks, in a direct all-to-all, that every part sent to this rank is as long as this rank
 * expects. A mismatch is for tsr_call_end_shared(): all ranks return its sentence. */
tsr_status tsr_direct_match(tsr_comm *comm, const tsr_collective *call);

#endif
