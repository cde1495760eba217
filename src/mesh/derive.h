/** Meshes derived from meshes, beyond the public calls in <tessera/mesh.h>. */
#ifndef TSR_MESH_DERIVE_H
#define TSR_MESH_DERIVE_H

#include "mesh/node_map.h"

#include <tessera/mesh.h>

/** A copy of the mesh that takes a reference to `nodes`, which cover its ranks (NULL: nodes are not
 * known). The caller destroys the copy. */
tsr_status tsr_mesh_with_node_map(const tsr_mesh *mesh, tsr_node_map *nodes, tsr_mesh **out);

/** A copy of the mesh without a communicator, for objects that must not keep the mesh alive or that
 * outlive its communicator. The caller destroys the copy. */
tsr_status tsr_mesh_copy_abstract(const tsr_mesh *mesh, tsr_mesh **out);

#endif
