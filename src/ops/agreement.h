/** How ranks learn that one of them failed, before they would wait for it. */
#ifndef TSR_OPS_AGREEMENT_H
#define TSR_OPS_AGREEMENT_H

#include "ops/blas/choice.h"

#include <tessera/dtensor.h>

/**
 * Collective. `local` is the status of this rank's own part of a call. TSR_OK if no rank failed.
 * Else a rank that failed gets its own status back, with its sentence; the others get
 * TSR_ERROR_PEER with the sentence of the lowest rank that failed. The communicator stays usable.
 */
tsr_status tsr_agree(tsr_comm *comm, tsr_status local);

/** tsr_agree(), which also compares the moves that follow, a bit for each: no rank may begin one
 * that another lacks. TSR_ERROR_ARGUMENT on all ranks: they differ. */
tsr_status tsr_agree_on_moves(tsr_comm *comm, tsr_status local, unsigned moves);

/**
 * tsr_agree(), which also agrees on the providers and kernels that multiply, so that replicas have
 * the same bits. `choice` begins as this rank's own. Its providers stay if all ranks have the same;
 * else they become those that all ranks have, in the order of the lowest rank that multiplies. Its
 * kernels become the best that all ranks run. A rank without providers, on another device, agrees
 * to anything. TSR_ERROR_UNSUPPORTED on all ranks, with a sentence that names two of them: no
 * provider is on all ranks.
 */
tsr_status tsr_agree_on_provider(tsr_comm *comm, tsr_status local, tsr_choice *choice);

/** The communicator over which a call agrees: that of the first of `count` layouts, some of them
 * NULL, that has one. So a rank whose operand is missing can still tell its peers. NULL: no layout
 * has a communicator. */
tsr_comm *tsr_agreement_comm(const tsr_layout *const *layouts, int count);

/** The layout of a dtensor; NULL for NULL. */
const tsr_layout *tsr_agreement_layout(const tsr_dtensor *tensor);

#endif
