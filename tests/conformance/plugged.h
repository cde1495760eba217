/** Runs of ranks over communicators that a function of a plugged-in engine makes, one for each
 * rank. */
#ifndef TESTS_COMM_PLUGGED_H
#define TESTS_COMM_PLUGGED_H

#include <tessera/sys/comm.h>

/** Sets the function; call before the first run. */
void plugged_use(tsr_comm_conformance *create);

/** Like tsr_threads_run(), with ranks that are threads, or processes: this one is rank 0, which
 * forks the others. Of `options` only the timeout is used. */
tsr_status plugged_run_threads(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);
tsr_status plugged_run_processes(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

#endif
