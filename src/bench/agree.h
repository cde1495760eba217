/** How ranks end a measurement together where one failed, in whatever call the others are. */
#ifndef TSR_BENCH_AGREE_H
#define TSR_BENCH_AGREE_H

#include <tessera/comm.h>
#include <tessera/sys/status.h>

/** A rank's first failure, with its sentence. Zero: none so far. */
typedef struct tsr_bench_outcome {
    tsr_status status;
    tsr_kept_sentence kept;
} tsr_bench_outcome;

/** Takes the status of this thread's last call. Only the first failure is kept. */
void tsr_bench_outcome_add(tsr_bench_outcome *o, tsr_status status);

/**
 * Collective: TSR_OK if no rank failed. Else the rank that failed first gets its own status, with
 * its sentence. So do others that failed by themselves; the rest gets TSR_ERROR_PEER with the
 * sentence of the first.
 *
 * Peers of a rank that failed may still wait for it in a call over `comm`. That call fails on all
 * ranks, since they make different ones; then the rank tries again, until its peers are here too.
 */
tsr_status tsr_bench_agree(tsr_comm *comm, tsr_bench_outcome *o);

#endif
