/** Rules of optimizers that are pointwise. */
#ifndef TSR_OPS_OPTIMIZERS_POINTWISE_H
#define TSR_OPS_OPTIMIZERS_POINTWISE_H

#include "ops/optimizers/update.h"

tsr_status tsr_update_sgd(tsr_update *updates, size_t count);
tsr_status tsr_update_adamw(tsr_update *updates, size_t count);
tsr_status tsr_update_lion(tsr_update *updates, size_t count);

#endif
