/** Meshes made of others. What is public of it is in <tessera/mesh.h>. */
#ifndef TSR_MESH_DERIVE_H
#define TSR_MESH_DERIVE_H

#include <tessera/mesh.h>

#include "mesh/node_map.h"

/** The mesh, knowing nodes that cover its ranks (NULL: none), of which it takes a reference. The caller destroys it. */
tsr_status tsr_mesh_with_node_map(const tsr_mesh *mesh, tsr_node_map *nodes, tsr_mesh **out);

/** The same mesh without a communicator: for what may not keep a mesh alive, or outlives its communicator. The caller destroys it. */
tsr_status tsr_mesh_copy_abstract(const tsr_mesh *mesh, tsr_mesh **out);

#endif
