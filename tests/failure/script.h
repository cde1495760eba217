/** A rank's program of public calls, step by step, that others break: by failing its allocations, leaving, or bringing other arguments. */
#ifndef TESTS_FAILURE_SCRIPT_H
#define TESTS_FAILURE_SCRIPT_H

#include <tessera/tessera.h>

/** What a rank holds between steps. */
typedef struct actor {
    tsr_comm *comm;
    int rank;
    float values[64 * 3];
    tsr_mesh *mesh;
    tsr_layout *rows, *columns;
    tsr_dtensor *x, *y, *z;
    tsr_plan *plan;
    void *workspace;
    float moved[64 * 3];
} actor;

/** One public call. `odd`: with arguments other than everybody else's. It leaves the actor as it was if it fails. */
typedef tsr_status script_step(actor *a, int odd);

typedef struct step {
    const char *name;
    script_step *run;
    int collective;
    int can_be_odd;
    int can_be_left; /**< a rank may leave before it: nothing of its memory is in flight */
} step;

extern const step script[];
extern const int script_length;

void actor_start(actor *a, tsr_comm *comm);
void actor_finish(actor *a);

#endif
