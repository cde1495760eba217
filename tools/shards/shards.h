/** A folder of rank-N.npy files, one for each rank of a mesh: local tensors as they are. */
#ifndef TESSERA_TOOLS_SHARDS_SHARDS_H
#define TESSERA_TOOLS_SHARDS_SHARDS_H

#include "cli/parse.h"
#include "files/npy.h"

typedef struct shards {
    npy_file *files; /**< in mesh order */
    int64_t *ranks;  /**< whose each is */
    int64_t count;
    tsr_dtype dtype; /**< of all of them */
} shards;

/** Opens the file of every rank of `mesh`, and reads the headers. All are of one dtype and number of dims; `dtype` says which, or
 * TSR_DTYPE_NONE that the files do. The caller closes what was opened, also when this fails. Returns the tool's exit status. */
int shards_open(const char *directory, const tsr_mesh *mesh, tsr_dtype dtype, shards *out);

/** The file of `rank`, whose elements are that rank's to load, or NULL if it is not in the mesh. */
npy_file *shards_find(const shards *s, int64_t rank);

/** The global shape under `placements`: along each dim, the sizes of the pieces into which the mesh dims that cut it divide it, added up.
 */
int shards_global_shape(const shards *s, const tsr_mesh *mesh, const char *placements, tensor_shape *out);

void shards_close(shards *s);

/** Refuses an --output where a rank outside `mesh` has a file, of another move: nobody could tell it from the new ones. A folder that is
 * not there, or cannot be listed, holds none. Returns the tool's exit status. */
int shards_refuse_others(const char *directory, const tsr_mesh *mesh);

#endif
