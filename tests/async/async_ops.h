/** Ops on the asynchronous device: every row of the library, by the host's kernels, which the
 * machine runs when their turn comes. */
#ifndef TESTS_ASYNC_OPS_H
#define TESTS_ASYNC_OPS_H

#include "async_device.h"

/** async_table() with the entry `launch`; without a gemm, so that products have the host's bits, or
 * with it. */
const tsr_device_table *async_ops_table(bool with_gemm);

/** From now on the device has no kernel of the row; NULL: of all again. `name` is kept. */
void async_lack(async_machine *machine, const char *name);

#endif
