/** A world of GPUs without a GPU, for tests of the NCCL engine, and the ways a rank waits. */
#ifndef TESTS_COMM_NCCL_WORLD_H
#define TESTS_COMM_NCCL_WORLD_H

#include "comm/engines/nccl/engine.h"
#include "comm_suite.h"
#include "standin.h"

/** SHORT_MS: the timeout of a world, for peers that do not come. LONG_MS: one that is long enough
 * for peers that do come, on a busy machine. */
#define SHORT_MS 300
#define LONG_MS  20000

/** The number of ways to wait for peers. */
enum { MOST_CALLS = 5 };

/** Waits for peers in way `k` of MOST_CALLS. */
tsr_status wait_for_peers(tsr_comm *comm, int k);

/** One NCCL communicator for each rank, created by the test. */
typedef struct world {
    bool lent;
    tsr_rank_main *body;
    void *arg;
    ncclComm_t comms[4];
    tsr_nccl_id id;
    tsr_nccl_options options;
    tsr_status failure; /**< the expected status of a creation */
    const char *words;
} world;

/** Starts a world of `devices` GPUs, whose communicators wait for SHORT_MS. */
void begin_world(world *w, int devices);

/** Fails the test if anything of the world was misused or is left. */
void end_world(void);

void assert_ran(tsr_status status);

#endif
