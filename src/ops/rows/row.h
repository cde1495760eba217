/** What a row is: sys/ops.h. */
#ifndef TSR_OPS_ROWS_ROW_H
#define TSR_OPS_ROWS_ROW_H

#include "ops/kernels/call.h"
#include "ops/rules/propagate.h"

#endif
