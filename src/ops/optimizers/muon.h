/** The rule of Muon. */
#ifndef TSR_OPS_OPTIMIZERS_MUON_H
#define TSR_OPS_OPTIMIZERS_MUON_H

#include "ops/optimizers/update.h"

tsr_status tsr_update_muon(tsr_update *updates, size_t count);

#endif
