/** What a layout must satisfy; the sentences say which placement is wrong and what would work. */
#ifndef TSR_PLACEMENT_CHECK_H
#define TSR_PLACEMENT_CHECK_H

#include "placement/layout.h"

/** Everything that can be said before a layout exists: pointers, shape, dims in range, modifiers, orders, Partial ops. */
tsr_status tsr_layout_check(const tsr_mesh *mesh, const tsr_placement *placements, int ndim, const int64_t *shape, tsr_dtype dtype,
                            bool has_out);

/** That explicit sizes and blocks sum to every piece that they meet. */
tsr_status tsr_layout_check_pieces(const tsr_layout *layout);

#endif
