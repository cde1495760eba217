/** One rank of a sweep, which runs one case after the other. */
#ifndef TESTS_REDISTRIBUTE_ACTOR_H
#define TESTS_REDISTRIBUTE_ACTOR_H

#include "mirror.h"
#include "moved.h"
#include "sweep.h"

#include <tessera/comm.h>

#include <pthread.h>

/** A rank's result of a case. */
typedef struct verdict {
    bool failed;
    char text[1400];
    int64_t received, sent;
    int in_place;
    int64_t least; /**< least bytes of workspace that this rank needs */
} verdict;

/** What the ranks of one run share. Rank 0 writes it between barriers; each rank writes only its
 * own verdict. */
typedef struct stage {
    move_sweep *sweep;
    int64_t next;
    bool more, stop;
    sweep_case current;
    oracle_move moves[SWEEP_TENSORS];
    pthread_barrier_t barrier;
    verdict verdicts[ORACLE_MAX_RANKS];
} stage;

/** One rank's objects. Meshes are kept while cases have equal ones, so that their caches of plans
 * fill up and evict. */
typedef struct actor {
    stage *stage;
    tsr_comm *comm;
    int rank;
    verdict *verdict;
    tsr_mesh *src_mesh, *dst_mesh;
    oracle_mesh src_model, dst_model;
    int count; /**< number of tensors of the case */
    moved at[SWEEP_TENSORS];
    mirror src[SWEEP_TENSORS], dst[SWEEP_TENSORS]; /**< of the tensors' memory */
    int64_t cap;                                   /**< max_workspace; 0: none */
} actor;

/** The layouts of tensor `i` of a case. */
const oracle_layout *sweep_source(const sweep_case *c, int i);
const oracle_layout *sweep_destination(const sweep_case *c, int i);

/** Runs the stage's current case, and writes this rank's verdict. */
void actor_play(actor *a);
void actor_finish(actor *a);

#endif
