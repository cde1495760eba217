/** What a kernel is given: sys/ops.h. */
#ifndef TSR_OPS_KERNELS_CALL_H
#define TSR_OPS_KERNELS_CALL_H

#include <tessera/sys/ops.h>

#include <stdbool.h>

#endif
