/** Where the states of a parameter lie. */
#ifndef TSR_OPS_OPTIMIZERS_LAYOUTS_H
#define TSR_OPS_OPTIMIZERS_LAYOUTS_H

#include <tessera/optimizer.h>

/**
 * The layout of the states of parameter `index`, which has layout `own`, in the dtype in which its
 * update is computed. Where the update works on the tensor of which the parameter is a view,
 * `*flat` gets the layout of one dim that is `*out` but for the shape; else NULL. The caller owns
 * both.
 */
tsr_status tsr_optimizer_place(const tsr_optimizer_options *options, size_t index, const tsr_layout *own,
                               tsr_layout **out, tsr_layout **flat);

#endif
