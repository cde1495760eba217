/** The rule of Muon. */
#ifndef TSR_OPS_OPTIMIZERS_MUON_H
#define TSR_OPS_OPTIMIZERS_MUON_H

#include "ops/optimizers/update.h"

tsr_update_rule tsr_update_muon;

#endif
