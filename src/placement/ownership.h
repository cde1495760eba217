/** The shard at each coordinate of a layout: shapes, positions and owners. Pure integers; nothing
 * here checks its arguments. */
#ifndef TSR_PLACEMENT_OWNERSHIP_H
#define TSR_PLACEMENT_OWNERSHIP_H

#include "placement/layout.h"

/** The kind of a mesh dim's placement; a mesh dim of size 1 counts as Replicate. */
tsr_placement_kind tsr_layout_kind(const tsr_layout *layout, int mesh_dim);

/** The local length of `dim` at a coordinate in range. */
int64_t tsr_layout_length(const tsr_layout *layout, int dim, const int64_t *coordinate);

/** The run of global positions that starts at local position `at` of `dim`: global [begin,
 * begin + length), local from `at`. 0 <= at < tsr_layout_length(). */
tsr_cut_run tsr_layout_position(const tsr_layout *layout, int dim, const int64_t *coordinate, int64_t at);

/** The owner of global position `at` of `dim`: writes its coordinate in each mesh dim that cuts
 * `dim`, and returns the run that starts at `at`. */
tsr_cut_run tsr_layout_owner_along(const tsr_layout *layout, int dim, int64_t at, int64_t *coordinate);

/** Writes the local shape at a coordinate and returns its ndim. NULL, for a rank outside the mesh:
 * one dim of size 0. */
int tsr_layout_local_shape(const tsr_layout *layout, const int64_t *coordinate, int64_t *shape);

#endif
