/** A rank's program of public calls, in steps, for tests that break it: failing allocations, ranks
 * that leave, arguments that differ. */
#ifndef TESTS_FAILURE_SCRIPT_H
#define TESTS_FAILURE_SCRIPT_H

#include <tessera/tessera.h>

/** The objects of a rank between steps. */
typedef struct actor {
    tsr_comm *comm;
    int rank;
    float values[64 * 3];
    tsr_mesh *mesh, *falling; /* all ranks, in their order and in the other */
    tsr_layout *rows, *columns;
    tsr_dtensor *x, *y, *z;
    tsr_dtensor *far;  /**< like x, on a mesh of the ranks in reverse order */
    tsr_dtensor *gaps; /**< like x, over memory with gaps */
    float spread[64 * 3];
    tsr_plan *plan;
    void *workspace;
    float moved[64 * 3];
} actor;

/** Makes one public call, with `odd` with other arguments than the peers. Leaves the actor as it
 * was if it fails. */
typedef tsr_status script_step(actor *a, int odd);

typedef struct step {
    const char *name;
    script_step *run;
    int collective;
    int can_be_odd;
    int can_be_left; /**< a rank may leave before this step, since none of its memory is in use by peers */
} step;

extern const step script[];
extern const int script_length;

void actor_start(actor *a, tsr_comm *comm);
void actor_finish(actor *a);

#endif
