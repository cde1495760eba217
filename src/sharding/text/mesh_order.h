/** The order of a mesh's ranks, as formats tell it. */
#ifndef TSR_SHARDING_TEXT_MESH_ORDER_H
#define TSR_SHARDING_TEXT_MESH_ORDER_H

#include "base/text/text.h"

#include <tessera/mesh.h>

#include <stdbool.h>

/** True if the mesh's ranks count from 0 in row-major order. */
bool tsr_mesh_counts(const tsr_mesh *mesh);

/** Advances a coordinate along `count` mesh dims, the last of them fastest; false after the last
 * coordinate, when it is 0 again along them. */
bool tsr_mesh_next_along(const tsr_mesh *mesh, int count, const int *dims, int64_t *coordinate);

/** Appends the mesh's ranks in row-major order, each behind `word`. */
void tsr_mesh_write_ranks(const tsr_mesh *mesh, const char *between, const char *word, tsr_text *out);

#endif
