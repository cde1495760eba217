/** What one rank of a sweep does with one case. */
#ifndef TESTS_REDISTRIBUTE_ACTOR_H
#define TESTS_REDISTRIBUTE_ACTOR_H

#include "mirror.h"
#include "moved.h"
#include "sweep.h"
#include <pthread.h>
#include <tessera/comm.h>

/** What a rank found out about one case. */
typedef struct verdict {
    bool failed;
    char text[1400];
    int64_t received, sent;
    int in_place;
    int64_t least; /**< bytes of workspace with which this rank can do */
} verdict;

/** What the ranks of one tsr_threads_run() share. Rank 0 writes between barriers; a rank writes its own verdict. */
typedef struct stage {
    move_sweep *sweep;
    int64_t next;
    bool more, stop;
    sweep_case current;
    oracle_move moves[SWEEP_TENSORS];
    pthread_barrier_t barrier;
    verdict verdicts[ORACLE_MAX_RANKS];
} stage;

/** One rank's objects; the meshes are kept while cases have the same ones, so that their caches of plans fill up and evict. */
typedef struct actor {
    stage *stage;
    tsr_comm *comm;
    int rank;
    verdict *verdict;
    tsr_mesh *src_mesh, *dst_mesh;
    oracle_mesh src_model, dst_model;
    int count; /**< tensors of the case */
    moved at[SWEEP_TENSORS];
    mirror src[SWEEP_TENSORS], dst[SWEEP_TENSORS]; /**< of their memory */
    int64_t cap;                                   /**< of the workspace; 0: none */
} actor;

/** The layouts of tensor `i` of a case. */
const oracle_layout *sweep_source(const sweep_case *c, int i);
const oracle_layout *sweep_destination(const sweep_case *c, int i);

/** Plays the stage's current case and leaves this rank's verdict. */
void actor_play(actor *a);
void actor_finish(actor *a);

#endif
