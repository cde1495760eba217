/** Rules of optimizers that are pointwise. */
#ifndef TSR_OPS_OPTIMIZERS_POINTWISE_H
#define TSR_OPS_OPTIMIZERS_POINTWISE_H

#include "ops/optimizers/update.h"

tsr_update_rule tsr_update_sgd, tsr_update_adamw, tsr_update_lion;

#endif
