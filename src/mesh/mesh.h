/** What the folders above need of a mesh beyond the public calls. Pure integers; nothing here checks its arguments. */
#ifndef TSR_MESH_MESH_H
#define TSR_MESH_MESH_H

#include <stdbool.h>
#include <tessera/mesh.h>

#include "mesh/grid.h"
#include "mesh/node_map.h"

/** The rank at a coordinate that is known to be in range. */
int64_t tsr_mesh_rank(const tsr_mesh *mesh, const int64_t *coordinate);

/** True, with the coordinate, if `rank` is in the mesh. No cost that grows with the mesh where its ranks are regular, else a binary search.
 */
bool tsr_mesh_locate(const tsr_mesh *mesh, int64_t rank, int64_t *coordinate);

/** The ndim sizes; borrowed. */
const int64_t *tsr_mesh_shape(const tsr_mesh *mesh);

/** Which rank stands where; borrowed. */
const tsr_grid *tsr_mesh_grid(const tsr_mesh *mesh);

/**
 * An abstract mesh with rank first + the sum of coordinate * stride at each coordinate, in memory that does not grow with the ranks.
 * Strides of dims of size 1 are ignored. `call` names the asker in errors. TSR_ERROR_ARGUMENT: as tsr_mesh_create_abstract(), or the
 * strides do not nest (grid.h), or a rank is out of range.
 */
tsr_status tsr_mesh_create_strided(const char *call, tsr_context *context, int ndim, const int64_t *shape, const char *const *names,
                                   int64_t first, const int64_t *strides, tsr_mesh **out);

/** A fingerprint of the geometry: equal meshes (tsr_mesh_equal()) have equal ones. */
uint64_t tsr_mesh_hash(const tsr_mesh *mesh);

/** What the mesh knows of nodes; borrowed, NULL: nothing. */
tsr_node_map *tsr_mesh_node_map(const tsr_mesh *mesh);

/** The one slot in which src/tensor keeps its cache; no part of the mesh's identity. `destroy` is called with `data` when the mesh
 * goes; data that another tsr_mesh_slot_set() replaces is the caller's again. Belongs to the mesh's communicator handle: not locked. What
 * hangs here must not retain the mesh, or neither would ever go. */
void *tsr_mesh_slot(const tsr_mesh *mesh);
void tsr_mesh_slot_set(const tsr_mesh *mesh, void *data, void (*destroy)(void *data));

#endif
