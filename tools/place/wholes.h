/** Whole tensors in .npy files, for work on ranks: read by all ranks, and written by them. */
#ifndef TESSERA_TOOLS_PLACE_WHOLES_H
#define TESSERA_TOOLS_PLACE_WHOLES_H

#include "place/place.h"

#include <tessera/npy.h>

/** Opens and loads the file of a tensor of the layout's dtype. Returns the tool's exit status; the
 * caller destroys `*out`. */
int wholes_open(const char *path, const tsr_layout *layout, tsr_npy **out);

/** The mesh of this rank that is like an abstract one. Without `comm` it is abstract, too, in
 * `context`, which is NULL with it. */
tsr_status wholes_mesh(tsr_comm *comm, tsr_context *context, const tsr_mesh *like, tsr_mesh **out);

/** The layout on the mesh of this rank. */
tsr_status wholes_layout(const tsr_mesh *mesh, const tsr_layout *like, tsr_layout **out);

/** This rank's part of a loaded file. */
tsr_status wholes_read(const tsr_npy *file, const tsr_mesh *mesh, const tsr_layout *like, tsr_dtensor **out);

/** What ranks do, and the files that they write. */
typedef struct wholes_job {
    const char *directory;
    const char *const *names; /**< of the files in it */
    size_t count;
    place_body *body;
    void *arg;
    bool *written; /**< by file; wholes_run() gives it */
} wholes_job;

/** Collective: writes a whole tensor to file `index` of the job. */
tsr_status wholes_write(const wholes_job *job, size_t index, const tsr_dtensor *x);

/** Makes the folder and runs the body on every rank; after a failure no file is left of those that
 * were written. Returns the tool's exit status. */
int wholes_run(place *here, int ranks, wholes_job *job);

#endif
