/** Meshes that tests of ranks' calls are made with, and the ranks along their dims, by looking at
 * every rank. */
#ifndef TESTS_COMM_LINES_H
#define TESTS_COMM_LINES_H

#include "comm_suite.h"

#include <tessera/mesh.h>

enum { LINES_MOST_RANKS = 8 };

/** Runs `body` with the text of each mesh as `arg`, on enough ranks for it and more. */
void lines_run(tsr_rank_main *body);

/** The ranks along some dims through this rank, in row-major order of their coordinates. */
typedef struct line {
    char dims[32];                           /**< "a,c" */
    int count, own, ranks[LINES_MOST_RANKS]; /**< `count` is 0 for a rank outside */
} line;

/** The line along the dims whose bits are set in `mask`. */
tsr_status lines_find(const tsr_mesh *mesh, unsigned mask, line *out);

/** The number of masks of the mesh's dims, with 0. */
unsigned lines_masks(const tsr_mesh *mesh);

/** Checks what a rank gets of a call in which `culprit` fails: its own fault, a sentence about that
 * rank if it `meets` it, or nothing. */
tsr_status lines_check_told(tsr_comm *comm, tsr_status status, int culprit, bool meets);

#endif
