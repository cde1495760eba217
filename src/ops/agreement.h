/** How ranks learn that one of them failed on its own before they wait for it. */
#ifndef TSR_OPS_AGREEMENT_H
#define TSR_OPS_AGREEMENT_H

#include <tessera/comm.h>

/**
 * Collective: `local` is how this rank's own part of `caller` went. TSR_OK if all went well; a rank that failed gets its own status back,
 * with its sentence; the others TSR_ERROR_PEER naming the lowest rank that failed. The communicator stays usable.
 */
tsr_status tsr_agree(tsr_comm *comm, const char *caller, tsr_status local);

/** True for faults that all ranks find alike in shared arguments, before any communication: no agreement is needed then. */
static inline int tsr_is_shared_fault(tsr_status status)
{
    return status == TSR_ERROR_ARGUMENT || status == TSR_ERROR_UNSUPPORTED;
}

#endif
