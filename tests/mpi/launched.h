/** Tests whose ranks are the processes of one mpirun: every process runs the same tests, and a test
 * of n ranks uses the first n processes. */
#ifndef TESTS_MPI_LAUNCHED_H
#define TESTS_MPI_LAUNCHED_H

#include <mpi.h>

#include <tessera/mpi.h>

/** Like tsr_threads_run(), for comm_suite.h, over shared memory or by messages. Of `options` the
 * timeout is used. A run of more ranks than processes is skipped. The first call initializes MPI,
 * which is finalized at the end of the program. */
tsr_status launched_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);
tsr_status launched_run_by_messages(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** launched_run() with all options of MPI's engine. */
tsr_status launched_run_with(int nranks, tsr_rank_main *body, void *arg, const tsr_mpi_options *options);

/** The number of processes, and the rank of this one. */
int launched_ranks(void);
int launched_rank(void);

/** For ranks that come late, by messages of the test itself: launched_await() waits, at most half a
 * minute and while MPI makes progress, until `rank` calls launched_wake() for this rank. */
void launched_await(int rank);
void launched_wake(int rank);

/** launched_run_with() that fails the running test with the sentence of the rank that failed. */
void launched_run_all(int nranks, tsr_rank_main *body, void *arg, const tsr_mpi_options *options);

/** Fails the running test unless `status`, of the last call, is `wanted` with a sentence that
 * contains `part`. */
void launched_assert_refused(tsr_status status, tsr_status wanted, const char *part);

#endif
