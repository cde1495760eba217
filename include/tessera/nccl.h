/**
 * @file
 * NCCL: communicators over ncclComm_t, in libtessera-cuda. A rank is a GPU, and a GPU is one rank;
 * rank threads that share a GPU use tsr_comm_create_threads().
 *
 * @par Transfers
 * Device memory is sent in stream order. The host waits only for the enqueuing, during which NCCL
 * connects to a peer on first contact. Host memory is sent by way of memory that the GPU reaches,
 * and has arrived when the call returns. All communicators of one rank may be used by one thread at
 * a time.
 *
 * @par Errors
 * Lost peers are not named, for NCCL does not know them: ranks that wait for them get
 * TSR_ERROR_PEER at their timeout. Messages between two ranks are not compared: if their sizes
 * differ, NCCL's behaviour is undefined.
 *
 * @par Plans and graphs
 * Executions of plans with tensors of the GPU compare nothing between ranks (see
 * tsr_plan_execute()): they only enqueue and allocate nothing. Each rank may capture them into a
 * CUDA graph of its own, once it has executed the plan in the same way. All ranks must launch their
 * graphs equally often. The caller orders a launch with the rank's other work over NCCL, on one
 * stream or by events. A rank that fails by itself in such an execution aborts. With NCCL the abort
 * reaches no other rank: peers learn of it from tsr_comm_wait(), at its timeout.
 */
#ifndef TESSERA_NCCL_H
#define TESSERA_NCCL_H

#include <tessera/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The type that ncclComm_t points to. */
struct ncclComm;

/** The bytes of an ncclUniqueId. */
typedef struct tsr_nccl_id {
    char bytes[128];
} tsr_nccl_id;

/** Options of communicators over NCCL. */
typedef struct tsr_nccl_options {
    size_t size;                     /**< sizeof(tsr_nccl_options) */
    tsr_context *context;            /**< retained; NULL: defaults */
    const tsr_device_driver *driver; /**< the driver whose memory is sent, which must outlive the
                                          communicator; NULL: any driver called "cuda" */
    int64_t timeout_ms;              /**< how long a call waits for its peers; 0: for ever.
                                          TSR_TIMEOUT_MS overrides it */
    int no_split;                    /**< 1: the communicator is lent and may not be split; plans
                                          then do without groups */
} tsr_nccl_options;

/** A timeout of ten minutes; everything else off. */
#define TSR_NCCL_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_nccl_options), TSR_NULL, TSR_NULL, 600000, 0                                    \
    }

/**
 * A communicator over `comm`, an ncclComm_t, which is borrowed, must be ready, and must outlive
 * `*out`. Its device is the one that it was made on. Not collective; `options` may be NULL. The
 * caller destroys `*out`. TSR_ERROR_UNAVAILABLE: there is no GPU. TSR_ERROR_UNSUPPORTED: NCCL is
 * older than 2.18.
 *
 * `comm` is split where plans need groups, and never aborted. After a call has returned
 * TSR_ERROR_PEER or has aborted, its owner must abort it before tsr_comm_destroy(); otherwise that
 * leaks memory which NCCL may still use. If `comm` was made blocking, NCCL's calls may wait for
 * peers for ever.
 */
TSR_API tsr_status tsr_comm_from_nccl(struct ncclComm *comm, const tsr_nccl_options *options,
                                      tsr_comm **out);

/**
 * An id for tsr_comm_create_nccl(). One rank makes it and gives it to the others by its own means.
 */
TSR_API tsr_status tsr_nccl_id_create(tsr_nccl_id *out);

/**
 * Collective: a communicator of `nranks` ranks on the calling threads' current CUDA devices, one
 * device per rank. `options` may be NULL. The caller destroys `*out`. Errors as for
 * tsr_comm_from_nccl(); TSR_ERROR_UNSUPPORTED also if two ranks are on one GPU; TSR_ERROR_PEER: not
 * all ranks came in time.
 *
 * tsr_comm_destroy() then waits for work under way and for peers to destroy theirs, as NCCL does,
 * but no longer than the timeout. It does not wait once a call has returned TSR_ERROR_PEER, nor
 * after tsr_comm_abort(), which reaches no other rank.
 */
TSR_API tsr_status tsr_comm_create_nccl(int nranks, int rank, const tsr_nccl_id *id,
                                        const tsr_nccl_options *options, tsr_comm **out);

#ifdef __cplusplus
}
#endif

#endif
