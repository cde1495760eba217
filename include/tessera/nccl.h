/**
 * @file
 * NCCL: communicators over ncclComm_t, in libtessera-cuda. A rank is a GPU, and a GPU is one rank:
 * rank threads that share a GPU use tsr_comm_create_threads().
 *
 * Device memory is sent in stream order, and the host waits for nothing but the enqueuing, in which
 * NCCL meets a peer the first time that they talk. Host memory is sent by way of memory that the
 * GPU reaches, and is there on return. Peers that are lost are not named, for NCCL does not know
 * them: whoever waits for them gets TSR_ERROR_PEER when its time is over. Messages between two
 * ranks are not compared: ranks whose sizes differ are undefined behaviour of NCCL's. All
 * communicators of one rank may be used by one thread at a time.
 *
 * Executions of plans with tensors of the GPU compare nothing between ranks (see
 * tsr_plan_execute()): they only enqueue, without allocating, and each rank may capture them into a
 * CUDA graph of its own, once it has executed the plan as it is. All ranks launch their graphs as
 * often; a launch is ordered with what else the rank does over NCCL by the caller, on one stream or
 * by events. A rank that fails by itself in such an execution aborts, which here reaches no other
 * rank: tsr_comm_wait() tells its peers, when its time is over.
 */
#ifndef TESSERA_NCCL_H
#define TESSERA_NCCL_H

#include <tessera/comm.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What ncclComm_t points to. */
struct ncclComm;

/** An ncclUniqueId. */
typedef struct tsr_nccl_id {
    char bytes[128];
} tsr_nccl_id;

/** Options of communicators over NCCL. */
typedef struct tsr_nccl_options {
    size_t size;                     /**< sizeof(tsr_nccl_options) */
    tsr_context *context;            /**< retained; NULL: defaults */
    const tsr_device_driver *driver; /**< whose memory is sent; NULL: that of any driver called
                                          "cuda". Outlives the communicator */
    int64_t timeout_ms;              /**< how long a call waits for its peers; 0: for ever.
                                          TSR_TIMEOUT_MS overrides */
    int no_split;                    /**< 1: it is lent and may not be split, so that plans make
                                          do without groups */
} tsr_nccl_options;

/** Ten minutes. */
#define TSR_NCCL_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_nccl_options), 0, 0, 600000, 0                                                  \
    }

/**
 * Borrows `comm`, an ncclComm_t, which must be ready, and outlive `*out`; its device is the one
 * that it was made on. It is split where plans need groups, and never aborted: once a call has
 * returned TSR_ERROR_PEER, or has aborted, that is for its owner to do, before tsr_comm_destroy(),
 * which otherwise leaves memory behind that NCCL may still use. If it was made blocking, calls of
 * NCCL's may wait for peers for ever. Not collective; `options` may be NULL. TSR_ERROR_UNAVAILABLE:
 * there is no GPU. TSR_ERROR_UNSUPPORTED: NCCL is older than 2.18.
 */
TSR_API tsr_status tsr_comm_from_nccl(struct ncclComm *comm, const tsr_nccl_options *options,
                                      tsr_comm **out);

/** An id for tsr_comm_create_nccl(): made by one rank, which gives it to the others by means of its
 * own. */
TSR_API tsr_status tsr_nccl_id_create(tsr_nccl_id *out);

/**
 * Collective: a communicator of `nranks` ranks on the calling threads' current CUDA devices, one
 * each. `options` may be NULL. Errors as for tsr_comm_from_nccl(); TSR_ERROR_UNSUPPORTED also where
 * two ranks are on one GPU; TSR_ERROR_PEER: not all came in time. When it is destroyed it waits for
 * what is under way and for its peers to do the same, as NCCL does, but no longer than its timeout,
 * and not at all once a call has returned TSR_ERROR_PEER or after tsr_comm_abort(), which reaches
 * no other rank.
 */
TSR_API tsr_status tsr_comm_create_nccl(int nranks, int rank, const tsr_nccl_id *id,
                                        const tsr_nccl_options *options, tsr_comm **out);

#ifdef __cplusplus
}
#endif

#endif
