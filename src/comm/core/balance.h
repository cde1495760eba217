/**
 * Whether what ranks send is what their peers expect, where nobody reads the lists of others. Each rank sums up its sends and takes away
 * its receives, all as hashes; the sums of all ranks make 0 exactly when every message has a counterpart of its size. Only where they do
 * not do ranks tell one another more.
 */
#ifndef TSR_COMM_CORE_BALANCE_H
#define TSR_COMM_CORE_BALANCE_H

#include <tessera/comm.h>

/** What a rank sends and expects: lists of messages, or one count a rank. */
typedef struct tsr_sizes {
    const char *caller, *unit; /**< "tsr_comm_exchange", "bytes" */
    const tsr_message *sends, *receives;
    size_t send_count, receive_count;
    const int64_t *send_counts, *receive_counts; /**< NULL: it is lists */
} tsr_sizes;

/** This rank's sum. Allocates nothing. */
uint64_t tsr_balance_of(tsr_comm *comm, const tsr_sizes *mine);

/** Collective, by messages, once the sums are known not to make 0: TSR_ERROR_ARGUMENT with one sentence on every rank, that of the lowest
 * rank that expects something else than is sent to it. */
tsr_status tsr_balance_explain(tsr_comm *comm, const tsr_sizes *mine);

#endif
