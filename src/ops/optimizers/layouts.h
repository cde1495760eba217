/** Where the states of parameters lie. */
#ifndef TSR_OPS_OPTIMIZERS_LAYOUTS_H
#define TSR_OPS_OPTIMIZERS_LAYOUTS_H

#include <tessera/optimizer.h>

/** The layout of the states of parameter `index`, which lies as `own`, of the dtype in which it is
 * updated. The caller owns `*out`. */
tsr_status tsr_optimizer_place(const tsr_optimizer_options *options, size_t index, const tsr_layout *own,
                               tsr_layout **out);

#endif
