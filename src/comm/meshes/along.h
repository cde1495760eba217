/** The groups of ranks along a mesh's dims, which the mesh remembers. */
#ifndef TSR_COMM_MESHES_ALONG_H
#define TSR_COMM_MESHES_ALONG_H

#include "comm/groups/group.h"

#include <tessera/mesh.h>

/**
 * The group of the ranks along `dims` through this rank, in row-major order of their coordinates;
 * NULL on a rank outside the mesh. Its communicator's ranks are positions along `dims`. Borrowed
 * from the mesh's communicator, which this rank must have entered for `call`.
 *
 * The first call for these dims of a mesh is collective over the communicator, and makes the group
 * unless it exists. Later calls communicate with no rank. TSR_ERROR_ARGUMENT: the mesh has no such
 * dims. Peers are told of this if no call for this mesh has succeeded before: only then they must
 * be in such a first call, too.
 */
tsr_status tsr_mesh_find_group(const tsr_mesh *mesh, const char *call, const char *dims, const tsr_group **out);

#endif
