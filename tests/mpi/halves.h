/** Runs over two pretended nodes of equal size. */
#ifndef TESTS_MPI_HALVES_H
#define TESTS_MPI_HALVES_H

#include <tessera/comm.h>

enum { HALVES = 2 };

/** The number of ranks of a node. */
int halves_size(const tsr_comm *comm);

/** Runs `body` on all ranks (of an odd number all but one), with the lower half on one node and the
 * others on another. Fails the running test with the sentence of the rank that failed.
 * halves_run_by_messages() shares no memory within a node either. */
void halves_run(tsr_rank_main *body, void *arg, int64_t timeout_ms);
void halves_run_by_messages(tsr_rank_main *body, int64_t timeout_ms);

#endif
