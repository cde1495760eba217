/** What coordinates own of a layout: shapes, positions and owners. Pure integers; nothing here checks its arguments. */
#ifndef TSR_PLACEMENT_OWNERSHIP_H
#define TSR_PLACEMENT_OWNERSHIP_H

#include "placement/layout.h"

/** The effective kind of a mesh dim: one of size 1 counts as Replicate. */
tsr_placement_kind tsr_layout_kind(const tsr_layout *layout, int mesh_dim);

/** The local length of `dim` at a coordinate in range. */
int64_t tsr_layout_length(const tsr_layout *layout, int dim, const int64_t *coordinate);

/** The run of global positions that starts at local position `at` of `dim`: global [begin, begin + length), local from `at`. 0 <= at <
 * length there. */
tsr_run tsr_layout_position(const tsr_layout *layout, int dim, const int64_t *coordinate, int64_t at);

/** The owner of global position `at` of `dim`: writes the coordinate of each mesh dim that cuts `dim`, and returns the run from there on.
 */
tsr_run tsr_layout_owner(const tsr_layout *layout, int dim, int64_t at, int64_t *coordinate);

/** Local shape at a coordinate, or NULL for a rank outside the mesh: one dim of size 0. Returns ndim. */
int tsr_layout_local_shape(const tsr_layout *layout, const int64_t *coordinate, int64_t *shape);

#endif
