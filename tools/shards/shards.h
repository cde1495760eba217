/** A folder of rank-N.npy files, one for each rank of a mesh, with the rank's local tensor. */
#ifndef TESSERA_TOOLS_SHARDS_SHARDS_H
#define TESSERA_TOOLS_SHARDS_SHARDS_H

#include "cli/parse.h"

#include <tessera/npy.h>

typedef struct shards {
    tsr_npy **files; /**< in mesh order */
    int64_t *ranks;  /**< the rank of each file */
    int64_t count;
    tsr_dtype dtype; /**< the dtype of every file */
} shards;

/** Opens the file of every rank of `mesh`, and reads the headers. All files must have one number of
 * dims and one dtype: `dtype`, or with TSR_DTYPE_NONE that of the first file. The caller calls
 * shards_close(), also after a failure. Returns the tool's exit status. */
int shards_open(const char *directory, const tsr_mesh *mesh, tsr_dtype dtype, shards *out);

/** The file of `rank`, whose elements the caller may load; NULL if the rank is not in the mesh. */
tsr_npy *shards_find(const shards *s, int64_t rank);

/** The global shape under `placements`: along each dim, the sum of the sizes of the pieces into
 * which the mesh dims cut it. Returns the tool's exit status. */
int shards_global_shape(const shards *s, const tsr_mesh *mesh, const char *placements, tensor_shape *out);

/** Frees the files; a zeroed one is fine. */
void shards_close(shards *s);

/** Refuses an --output folder that holds a file of a rank outside `mesh`, left by another move: it
 * would look like one of the new files. A folder that does not exist, or cannot be listed, passes.
 * Returns the tool's exit status. */
int shards_refuse_others(const char *directory, const tsr_mesh *mesh);

#endif
