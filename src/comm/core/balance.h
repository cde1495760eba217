/**
 * Checks that what ranks send is what their peers expect, on engines where no rank can read the
 * lists of another. Each rank hashes every message that it sends or receives, and subtracts the
 * hashes of its receives from those of its sends. The sum over all ranks is 0 if every send has a
 * receive of its size (and, but for a collision of hashes, only then). Ranks send one another their
 * sizes only if the sum is not 0.
 */
#ifndef TSR_COMM_CORE_BALANCE_H
#define TSR_COMM_CORE_BALANCE_H

#include <tessera/comm.h>

/** What a rank sends and expects: lists of messages, or one count per peer. */
typedef struct tsr_sizes {
    const char *caller, *unit; /**< for sentences: "tsr_comm_exchange", "bytes" */
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
    const int64_t *send_counts, *receive_counts; /**< one per rank; NULL: the lists above are used */
} tsr_sizes;

/** This rank's part of the sum. Allocates nothing; lists need comm->cursors. */
uint64_t tsr_balance_of(tsr_comm *comm, const tsr_sizes *mine);

/** Collective, by messages; to be called if the sum over all ranks is not 0. Returns
 * TSR_ERROR_ARGUMENT with the same sentence on every rank: it names the mismatch that the lowest
 * receiving rank found. */
tsr_status tsr_balance_explain(tsr_comm *comm, const tsr_sizes *mine);

#endif
