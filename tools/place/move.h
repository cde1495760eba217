/** One rank's part of a redistribution that is planned once and executed at will: what `redistribute` and the benchmarks run. */
#ifndef TESSERA_TOOLS_PLACE_MOVE_H
#define TESSERA_TOOLS_PLACE_MOVE_H

#include "cli/parse.h"
#include "place/place.h"

#include <tessera/tessera.h>

/** From one layout to another of one tensor on one mesh; text as it was given, and already judged. */
typedef struct move_request {
    const char *mesh, *from, *to;
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_mode mode;
    const tsr_cost_profile *profile; /**< by which it is planned; NULL: the context's */
} move_request;

/** Prepared for one rank. */
typedef struct move {
    const place *place;
    tsr_comm *comm;
    tsr_mesh *mesh;
    tsr_layout *from, *to;
    tsr_plan *plan;
    void *workspace;
} move;

/** Collective over `comm`, which is one of the place's: plans and prepares. The caller finishes the move before `comm` goes. */
tsr_status move_create(const place *p, tsr_comm *comm, const move_request *request, move *out);

/** Collective; enqueued on the rank's stream, where it has one. A rank outside the mesh passes any tensors. */
tsr_status move_execute(const move *m, const tsr_tensor *src, const tsr_tensor *dst);

/** Frees what move_create() made; a zeroed move is fine. */
void move_finish(move *m);

/** 1 if this rank is in the mesh. */
int move_has_rank(const move *m);

/** Seconds of a clock that only goes forward. */
double clock_seconds(void);

#endif
