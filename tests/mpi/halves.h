/** Runs over two nodes of as many ranks each. */
#ifndef TESTS_MPI_HALVES_H
#define TESTS_MPI_HALVES_H

#include <tessera/comm.h>

enum { HALVES = 2 };

/** Ranks of a node. */
int halves_size(const tsr_comm *comm);

/** All ranks but an odd one, the lower half on one node. Fails the running test with the sentence of the rank that failed. By messages:
 * nothing is shared on a node either. */
void halves_run(tsr_rank_main *body, void *arg, int64_t timeout_ms);
void halves_run_by_messages(tsr_rank_main *body, int64_t timeout_ms);

#endif
