/** Ranks over the NCCL engine on a stand-in, as tsr_threads_run() starts them. */
#ifndef TESTS_STANDIN_RANKS_H
#define TESTS_STANDIN_RANKS_H

#include <tessera/sys/comm.h>

/** Every rank on a thread and a GPU of its own, in one communicator that the engine has made. Misuse of NCCL fails the run, with
 * TSR_ERROR_INTERNAL, unless a rank has failed by itself. A timeout of 0 is a minute. */
tsr_status standin_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** The same over communicators that are lent: blocking ones, as most programs have. */
tsr_status standin_run_lent(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** The calling rank's GPU: memory there is sent as it is. */
tsr_device standin_ranks_device(void);

#endif
