/** Results that are views of an operand's memory. */
#ifndef TSR_OPS_EAGER_VIEW_H
#define TSR_OPS_EAGER_VIEW_H

#include "ops/eager/compute.h"

/** Makes the result of a row with a `view` over the memory of its first operand, which the result
 * keeps alive; `layout` is the result's. `*out` NULL: no strides can say it. Does not communicate.
 * The results of the computation are not read. */
tsr_status tsr_eager_view(const tsr_computation *computation, const tsr_layout *layout, tsr_dtensor **out);

#endif
