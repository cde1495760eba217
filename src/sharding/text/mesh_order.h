/** The order of a mesh's ranks, as formats tell it. */
#ifndef TSR_SHARDING_TEXT_MESH_ORDER_H
#define TSR_SHARDING_TEXT_MESH_ORDER_H

#include "base/text/text.h"

#include <tessera/mesh.h>

#include <stdbool.h>

/** Whether the mesh's ranks count from 0 in row-major order. */
tsr_status tsr_mesh_counts(const tsr_mesh *mesh, bool *counts);

/** Appends the mesh's ranks in row-major order. */
tsr_status tsr_mesh_write_ranks(const tsr_mesh *mesh, const char *between, tsr_text *out);

#endif
