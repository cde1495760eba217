/** The rule of Adafactor. */
#ifndef TSR_OPS_OPTIMIZERS_ADAFACTOR_H
#define TSR_OPS_OPTIMIZERS_ADAFACTOR_H

#include "ops/optimizers/update.h"

tsr_update_rule tsr_update_adafactor;

#endif
