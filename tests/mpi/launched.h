/** Tests whose ranks are the processes of one mpirun: every process runs the same tests, and a test's ranks are the first so many. */
#ifndef TESTS_MPI_LAUNCHED_H
#define TESTS_MPI_LAUNCHED_H

#include <mpi.h>
#include <tessera/mpi.h>

/** As tsr_threads_run(), for comm_suite.h; `options` gives the timeout. A run of more ranks than were launched is left out. Over memory
 * that the ranks share, and by messages. The first call initializes MPI, and the end of the program finalizes it. */
tsr_status launched_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);
tsr_status launched_run_by_messages(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** The same with all options. */
tsr_status launched_run_with(int nranks, tsr_rank_main *body, void *arg, const tsr_mpi_options *options);

/** How many processes there are, and which this is. */
int launched_ranks(void);
int launched_rank(void);

/** Ranks that come late, by messages of the test's own: this one waits for that to wake it, half a minute at most, and lets MPI work. */
void launched_await(int rank);
void launched_wake(int rank);

/** As launched_run_with() for tests: it fails the running one with the sentence of the rank that failed. */
void launched_run_all(int nranks, tsr_rank_main *body, void *arg, const tsr_mpi_options *options);

/** Fails the running test unless `status`, of the last call, is `wanted` with a sentence that holds `part`. */
void launched_assert_refused(tsr_status status, tsr_status wanted, const char *part);

#endif
