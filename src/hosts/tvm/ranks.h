/** Rank threads of the host's process: a communicator, and a thread for each rank but 0, which is
 * the caller's. The host may also call for ranks from threads of its own. */
#ifndef TSR_HOSTS_TVM_RANKS_H
#define TSR_HOSTS_TVM_RANKS_H

#include "hosts/tvm/call.h"

#include <tessera/comm.h>

typedef struct tsr_tvm_ranks tsr_tvm_ranks;

/** Adds a reference and returns `ranks`. */
tsr_tvm_ranks *tsr_tvm_ranks_retain(tsr_tvm_ranks *ranks);

/** Gives one reference back; the last one ends the threads and the communicator. */
void tsr_tvm_ranks_destroy(tsr_tvm_ranks *ranks);

int tsr_tvm_ranks_count(const tsr_tvm_ranks *ranks);

/** The handle of a rank; borrowed. */
tsr_comm *tsr_tvm_ranks_comm(const tsr_tvm_ranks *ranks, int rank);

/** Runs `body` for every rank, each on a thread of its own, and returns when all have returned: the
 * status and the sentence of the lowest rank with a failure of its own, else of a peer's. Calls by
 * several threads take turns. */
tsr_status tsr_tvm_ranks_run(tsr_tvm_ranks *ranks, tsr_status (*body)(tsr_comm *comm, void *arg), void *arg);

/** ranks(count, timeout_ms=0) -> tessera.Ranks */
tsr_status tsr_tvm_make_ranks(tsr_tvm_call *call);

#endif
