/** Checks of a layout; the sentences say which placement is wrong and what would work. */
#ifndef TSR_PLACEMENT_CHECK_H
#define TSR_PLACEMENT_CHECK_H

#include "placement/layout.h"

/** Checks what needs no layout: pointers, shape, dims in range, modifiers, orders, Partial ops.
 * TSR_ERROR_ARGUMENT. */
tsr_status tsr_layout_check(const tsr_mesh *mesh, const tsr_placement *placements, int ndim, const int64_t *shape,
                            tsr_dtype dtype, bool has_out);

/** TSR_ERROR_ARGUMENT: listed sizes or blocks do not sum to the length of a piece that they cut. */
tsr_status tsr_layout_check_pieces(const tsr_layout *layout);

#endif
