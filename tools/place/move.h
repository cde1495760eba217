/** One rank's part of a redistribution, planned once and executed any number of times:
 * `redistribute` and the benchmarks run it. */
#ifndef TESSERA_TOOLS_PLACE_MOVE_H
#define TESSERA_TOOLS_PLACE_MOVE_H

#include "cli/parse.h"
#include "place/place.h"

#include <tessera/tessera.h>

/** A move of one tensor between two layouts. The texts are those of the command line,
 * already checked. */
typedef struct move_request {
    const char *mesh, *from, *to;
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_mode mode;
    tsr_profile *profile; /**< for the planner; NULL: the context's profile */
    const char *to_mesh;  /**< the destination's mesh; NULL: `mesh` */
} move_request;

/** A move that is prepared for one rank. */
typedef struct move {
    const place *place;
    tsr_comm *comm;
    tsr_mesh *mesh, *to_mesh; /**< of source and destination */
    tsr_layout *from, *to;
    tsr_plan *plan;
    void *workspace;
} move;

/** Plans and prepares the move; collective over `comm`, a communicator of place_run(). The caller
 * finishes the move before `comm` goes. */
tsr_status move_create(const place *p, tsr_comm *comm, const move_request *request, move *out);

/** Executes the move; collective. On a device with streams it is only enqueued, on the rank's
 * stream. A rank outside a mesh may pass any tensor for it. */
tsr_status move_execute(const move *m, const tsr_tensor *src, const tsr_tensor *dst);

/** Frees the move; a zeroed move is fine. */
void move_finish(move *m);

/** 1 if this rank is in the mesh, of the move's source or destination, else 0. */
int move_has_rank(const tsr_mesh *mesh);

/** Seconds of the monotonic clock. */
double clock_seconds(void);

#endif
