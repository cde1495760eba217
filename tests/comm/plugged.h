/** Runs over communicators that somebody else's function makes, one a rank. */
#ifndef TESTS_COMM_PLUGGED_H
#define TESTS_COMM_PLUGGED_H

#include <tessera/sys/comm.h>

/** Before the first run. */
void plugged_use(tsr_comm_conformance *create);

/** As tsr_threads_run(): ranks are threads of this process; or processes, of which this is rank 0 and the others are forked off it. Of
 * `options` they take the timeout. */
tsr_status plugged_run_threads(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);
tsr_status plugged_run_processes(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

#endif
