/** The rule of Adafactor. */
#ifndef TSR_OPS_OPTIMIZERS_ADAFACTOR_H
#define TSR_OPS_OPTIMIZERS_ADAFACTOR_H

#include "ops/optimizers/update.h"

tsr_status tsr_update_adafactor(tsr_update *updates, size_t count);

#endif
