/** How ranks learn that one of them failed on its own before they wait for it. */
#ifndef TSR_OPS_AGREEMENT_H
#define TSR_OPS_AGREEMENT_H

#include "ops/blas/choice.h"
#include <tessera/dtensor.h>

/**
 * Collective: `local` is how this rank's own part of a call went, whatever the fault. TSR_OK if all went well; a rank that failed gets its
 * own status back, with its sentence; the others TSR_ERROR_PEER with the sentence of the lowest rank that failed. The communicator stays
 * usable.
 */
tsr_status tsr_agree(tsr_comm *comm, tsr_status local);

/**
 * tsr_agree(), and in the same meeting on what ranks multiply by, so that replicas have the same bits. `choice` is this rank's own; where
 * all have the same providers it stays, else it becomes those that all have, in the order of the lowest rank that multiplies, with
 * the kernels that all run. A choice of none, on another device, goes with everything. TSR_ERROR_UNSUPPORTED on all ranks, with a sentence
 * that names two of them: there is nothing that all have.
 */
tsr_status tsr_agree_on_provider(tsr_comm *comm, tsr_status local, tsr_choice *choice);

/** Over which a call agrees: that of the first of `count` layouts that is there and has one, so that a rank which lacks an operand can
 * still tell its peers. NULL: none has. */
tsr_comm *tsr_agreement_comm(const tsr_layout *const *layouts, int count);

/** The layout of a dtensor that may be NULL. */
const tsr_layout *tsr_agreement_layout(const tsr_dtensor *tensor);

#endif
