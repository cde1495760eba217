/** Meshes derived from meshes, beyond the public calls in <tessera/mesh.h>. */
#ifndef TSR_MESH_DERIVE_H
#define TSR_MESH_DERIVE_H

#include <tessera/mesh.h>

/** Some dims of a mesh, at least one, ascending. */
typedef struct tsr_mesh_dims {
    int count;
    int dims[TSR_MAX_DIMS];
} tsr_mesh_dims;

/** Reads a list of dims as tsr_mesh_slice() does; NULL and "" are all dims. `call` begins errors'
 * sentences. */
tsr_status tsr_mesh_choose_dims(const tsr_mesh *mesh, const char *call, const char *dims, tsr_mesh_dims *out);

/** How many ranks a slice of these dims has. */
int64_t tsr_mesh_count_slice(const tsr_mesh *mesh, const tsr_mesh_dims *dims);

/** The ranks of a slice, row-major: `dims` take all their values, and the other dims stay as in
 * `base`, a coordinate of the mesh. `ranks` has room for tsr_mesh_count_slice(). */
void tsr_mesh_list_slice(const tsr_mesh *mesh, const tsr_mesh_dims *dims, const int64_t *base, int64_t *ranks);

/** A mesh of the same shape, names, communicator and nodes, whose row-major ranks are `ranks`. The
 * caller destroys it. */
tsr_status tsr_mesh_reorder(const tsr_mesh *mesh, const int64_t *ranks, tsr_mesh **out);

/** A mesh of these dims over `comm`, whose ranks 0, 1, .. are the mesh's `ranks`, those of a slice:
 * with the dims' names and the ranks' nodes. The mesh owns `comm`, unless the call fails:
 * tsr_comm_destroy() ends it with the last mesh that was made of this one. The caller destroys the
 * mesh. */
tsr_status tsr_mesh_build_split(const tsr_mesh *mesh, const tsr_mesh_dims *dims, const int64_t *ranks, tsr_comm *comm,
                                tsr_mesh **out);

#endif
