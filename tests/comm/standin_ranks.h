/** Runs ranks over the NCCL engine on the stand-in, as tsr_threads_run() does. */
#ifndef TESTS_STANDIN_RANKS_H
#define TESTS_STANDIN_RANKS_H

#include <tessera/sys/comm.h>

/** Runs every rank on its own thread and GPU, in one communicator that the engine makes. Misuse of
 * NCCL fails the run with TSR_ERROR_INTERNAL, unless a rank has failed by itself. A timeout of 0 is
 * a minute. */
tsr_status standin_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** standin_run() over lent communicators, which are blocking, as those of most programs. */
tsr_status standin_run_lent(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options);

/** The calling rank's GPU, from whose memory NCCL sends directly. */
tsr_device standin_ranks_device(void);

#endif
