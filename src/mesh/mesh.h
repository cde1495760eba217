/** Mesh functions for the folders above, beyond the public calls. Pure integers; only
 * tsr_mesh_create_strided() checks its arguments. */
#ifndef TSR_MESH_MESH_H
#define TSR_MESH_MESH_H

#include "mesh/grid.h"
#include "mesh/node_map.h"

#include <tessera/mesh.h>

#include <stdbool.h>

/** The rank at a coordinate that is known to be in range. */
int64_t tsr_mesh_rank(const tsr_mesh *mesh, const int64_t *coordinate);

/** True, with the coordinate, if `rank` is in the mesh. Takes constant time if the ranks are
 * regular (grid.h), else a binary search. */
bool tsr_mesh_locate(const tsr_mesh *mesh, int64_t rank, int64_t *coordinate);

/** The sizes of the ndim mesh dims; borrowed. */
const int64_t *tsr_mesh_shape(const tsr_mesh *mesh);

/** The mesh's grid, which tells the rank at each coordinate; borrowed. */
const tsr_grid *tsr_mesh_grid(const tsr_mesh *mesh);

/**
 * An abstract mesh with rank first + the sum of coordinate * stride at each coordinate, in memory
 * that does not grow with the ranks. Strides of dims of size 1 are ignored. `call` begins errors'
 * sentences. TSR_ERROR_ARGUMENT: as tsr_mesh_create_abstract(), or the strides do not nest
 * (grid.h), or a rank is out of range.
 */
tsr_status tsr_mesh_create_strided(const char *call, tsr_context *context, int ndim, const int64_t *shape,
                                   const char *const *names, int64_t first, const int64_t *strides, tsr_mesh **out);

/** A fingerprint of the geometry: equal meshes (tsr_mesh_equal()) have equal fingerprints. */
uint64_t tsr_mesh_hash(const tsr_mesh *mesh);

/** The map of ranks to nodes; borrowed. NULL: nodes are not known. */
tsr_node_map *tsr_mesh_node_map(const tsr_mesh *mesh);

/** Where folders above keep data with a mesh. */
typedef enum tsr_mesh_slot {
    TSR_MESH_SLOT_PLANS,       /**< of src/tensor: the cache of plans */
    TSR_MESH_SLOT_GROUPS,      /**< of src/comm/meshes: the groups along dims */
    TSR_MESH_SLOT_ATTACHMENTS, /**< tsr_mesh_attachment() */
    TSR_MESH_SLOTS
} tsr_mesh_slot;

/** The data of a slot; NULL: not set. Slots do not count when meshes are compared. Not locked: one
 * thread at a time, as with the mesh's communicator handle. */
void *tsr_mesh_slot_get(const tsr_mesh *mesh, tsr_mesh_slot slot);

/** Sets a slot. The mesh calls `destroy` with `data` when it is destroyed; data that another call
 * replaces is the caller's again. `data` must not retain the mesh, or neither would ever be
 * destroyed. */
void tsr_mesh_slot_set(const tsr_mesh *mesh, tsr_mesh_slot slot, void *data, void (*destroy)(void *data));

#endif
