/**
 * @file
 * Communicators, like MPI_Comm and ncclComm_t. A handle is one rank's end of a group of ranks.
 *
 * @par Threads
 * A rank is its handle, never the calling thread. Any thread may call for a rank, with one call in
 * flight per handle. A second caller gets TSR_ERROR_STATE, which names the call in flight; that
 * call goes on. If two ranks are given one handle by mistake, the first waits for a rank that never
 * calls, and the second is refused.
 *
 * @par Collective calls
 * Every rank of the communicator makes them, in the same order, with arguments that agree. Where
 * they differ, every rank gets TSR_ERROR_ARGUMENT, which names the lowest rank that differs from
 * rank 0 and both values. A rank that fails locally, or is given a bad argument, still takes part:
 * it gets its own status, the others get TSR_ERROR_PEER with its rank and sentence, and the
 * communicator stays usable.
 *
 * @par Calls that are refused at once
 * In these cases alone a rank returns at once although its peers wait for it:
 * - its handle is NULL, destroyed or in another call;
 * - an exchange or a plan is started on the handle, and the call is not its finish, or the call is
 *   a finish and nothing is started;
 * - the call splits a communicator that may not be split;
 * - the call is tsr_comm_exchange() with bad lists, on an engine that has messages alone.
 *
 * @par Broken communicators
 * A rank that is lost, has returned or times out breaks the communicator: every later call says so.
 * Once a call has returned such an error, nothing touches this rank's memory any more, on devices
 * with streams neither: only then does a call wait for its stream.
 */
#ifndef TESSERA_COMM_H
#define TESSERA_COMM_H

#include <tessera/context.h>
#include <tessera/tensor.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank's end of a communicator. */
typedef struct tsr_comm tsr_comm;

/** Options of rank threads. */
typedef struct tsr_threads_options {
    size_t size;          /**< sizeof(tsr_threads_options) */
    tsr_context *context; /**< retained; NULL: defaults */
    int64_t timeout_ms;   /**< how long a call waits for its peers; 0: for ever. TSR_TIMEOUT_MS
                               overrides it */
    int64_t spin;         /**< how often a waiter looks before it sleeps; 0: it sleeps at once, -1:
                               by the number of cores. TSR_SPIN overrides it */
    int64_t stall_ms;     /**< after how long tsr_threads_run() calls a wait a stall; 0: never.
                               TSR_STALL_MS overrides it */
} tsr_threads_options;

/** No timeout; ranks that have all waited for a minute are a stall. */
#define TSR_THREADS_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tsr_threads_options), TSR_NULL, 0, -1, 60000                                        \
    }

/**
 * One rank's program. When it returns, with any status, the rank leaves the communicator and all
 * that were split off it: peers that still wait for it get TSR_ERROR_PEER. The end of its thread by
 * pthread_exit() or cancellation does this too. It must not be left in other ways: an uncaught C++
 * exception ends the process (std::terminate), and a longjmp() out of it has no frame to go to.
 */
typedef tsr_status tsr_rank_main(tsr_comm *comm, void *arg);

/**
 * Runs `main` on `nranks` ranks, each on a thread of its own in this process, and returns when all
 * have returned. `comm` lives for the call of main. All ranks get the same `arg`. `options` may be
 * NULL.
 *
 * Returns TSR_OK if all ranks did. Otherwise it returns the status of the rank that failed first
 * for a reason of its own (not TSR_ERROR_PEER), with that rank's number and sentence. Where main
 * set no sentence for the status, the sentence is "returned io without a sentence" (or the other
 * status' name). A main that did not return counts as TSR_ERROR_STATE. TSR_ERROR_MEMORY: there are
 * not enough threads or memory for `nranks` ranks; no rank has run.
 *
 * @par Stalls
 * If all ranks that are left wait in different communicators, each for a rank that waits in
 * another, they get TSR_ERROR_PEER. A process without other threads finds this within about two
 * seconds. With other threads, any of which may call for a rank, it takes until nothing has changed
 * for options.stall_ms. Meanwhile the log reports a doubt (TSR_LOG_WARN), and then the break as an
 * error. If other threads may take longer than that before they call for a rank, set
 * options.stall_ms to 0.
 *
 * @par Cancellation
 * A thread that calls for a rank may be cancelled (deferred) while it waits for peers. These get
 * TSR_ERROR_PEER as if the rank had ended, and the communicator is broken. Memory that the call had
 * allocated is not freed. The thread that called tsr_threads_run() is itself cancelled only after
 * that has returned.
 */
TSR_API tsr_status tsr_threads_run(int nranks, tsr_rank_main *main, void *arg,
                                   const tsr_threads_options *options);

/**
 * For hosts with threads of their own: fills out[0..nranks) with one handle per rank. The calls of
 * all ranks must be able to block at the same time. Free each handle with tsr_comm_destroy(), which
 * counts as that rank's return. If a thread ends without it, peers wait until options.timeout_ms or
 * tsr_comm_abort(): the library does not know which threads belong to a rank.
 */
TSR_API tsr_status tsr_comm_create_threads(int nranks, const tsr_threads_options *options,
                                           tsr_comm *out[]);

/**
 * Ends this rank's handle; communicators that were split off it go on. Not collective. NULL is
 * fine, and so is a handle that was ended but is still referred to.
 *
 * Meshes and dtensors over the handle, with their memory, stay until they are destroyed, in any
 * order and by any thread. Calls that communicate over them, or make dtensors on them, return
 * TSR_ERROR_STATE from then on.
 *
 * It is a mistake to destroy a handle while another thread has a call in flight on it. Then the
 * communicator is aborted, and this function waits up to ten seconds for the call. If the call has
 * not ended by then, the handle stays as it is and the log says so (TSR_LOG_ERROR). If the calling
 * thread itself is in a call on the handle, or holds it (tsr_comm_hold()), the handle stays at
 * once: nothing is aborted, and the handle can be destroyed after the call.
 */
TSR_API void tsr_comm_destroy(tsr_comm *comm);

/** This handle's rank, 0 to size - 1. Any thread; does not communicate. */
TSR_API int tsr_comm_rank(const tsr_comm *comm);

/** The number of ranks. Any thread; does not communicate. */
TSR_API int tsr_comm_size(const tsr_comm *comm);

TSR_API const char *tsr_comm_engine(const tsr_comm *comm);   /**< "threads", "mpi", ..; borrowed */
TSR_API tsr_context *tsr_comm_context(const tsr_comm *comm); /**< borrowed, never NULL */

/**
 * The timings by which this rank chooses how to move many bytes on the host
 * (tsr_kernel_choices_get()). This communicator shares them with the one that it was split off and
 * with all that are split off it. Borrowed, never NULL, valid until tsr_comm_destroy(). Any thread;
 * does not communicate.
 */
TSR_API const struct tsr_kernel_choices *tsr_comm_kernel_choices(const tsr_comm *comm);

/** A number for the node of rank `rank` (0 to size - 1): ranks with equal numbers share a node. -1
 * for every rank: the engine does not know. Meshes over the communicator use these nodes unless
 * tsr_mesh_with_nodes() gives others. */
TSR_API int tsr_comm_node_of(const tsr_comm *comm, int rank);

/** 1 if both have the same ranks in the same order, in the sense of MPI_CONGRUENT: they are one
 * handle, or descend from one by tsr_comm_split(). NULL is congruent only to NULL. Any thread; does
 * not communicate. */
TSR_API int tsr_comm_congruent(const tsr_comm *a, const tsr_comm *b);

/** Collective: ranks of equal `color` form a communicator, ordered by `key`, then by rank. A rank
 * with a negative color takes part and gets NULL. The caller owns `*out`. It and `comm` may be
 * destroyed in either order. */
TSR_API tsr_status tsr_comm_split(tsr_comm *comm, int color, int key, tsr_comm **out);

/** Collective: returns when every rank has called it. Ranks that call something else get an error,
 * as in every collective, unless the engine compares nothing (TSR_COMM_UNCHECKED). */
TSR_API tsr_status tsr_comm_barrier(tsr_comm *comm);

/** Ends every wait in this communicator, its parents and its groups, now and later, with
 * TSR_ERROR_PEER. Any thread, at any time. */
TSR_API void tsr_comm_abort(tsr_comm *comm);

/**
 * Waits until the work in `stream` is done, and polls for errors of peers meanwhile.
 * TSR_ERROR_PEER: `timeout_ms` (0: for ever) has passed. TSR_ERROR_ARGUMENT: a stream over an
 * engine of host memory alone. On the host, and over rank threads, which have nothing to poll, it
 * returns at once: to wait for a device's stream there, ask the device.
 */
TSR_API tsr_status tsr_comm_wait(tsr_comm *comm, tsr_stream stream, int64_t timeout_ms);

/**
 * Collective: allocates memory for communication, aligned to at least 64 bytes, which peers can
 * read directly where the engine allows it. `bytes` may differ between ranks. Each rank frees its
 * memory with tsr_comm_free() at a time of its own, once no rank has a call under way that uses it;
 * after tsr_comm_destroy() too, as long as a mesh over `comm` exists.
 */
TSR_API tsr_status tsr_comm_alloc(tsr_comm *comm, size_t bytes, void **out);

/** Frees memory of tsr_comm_alloc(), for which the caller asked `bytes`. Not collective. */
TSR_API void tsr_comm_free(tsr_comm *comm, void *memory, size_t bytes);

/*
 * Collectives. Counts are in elements. All buffers of a call are contiguous, on `device`, and used
 * in the order of `stream` (tessera.h). Floating sum, avg and prod are reduced in ascending rank
 * order with one rounding, so that every rank gets the same bits. `send` and `receive` may be the
 * same pointer only where the comment says so. A buffer of count 0 may be NULL. A host device whose
 * index is not 0, or whose stream is not NULL, is a fault of the rank that gives it.
 */

/** Puts the `counts[r]` elements of every rank r, in rank order, on every rank. `counts` has one
 * entry per rank and is the same on all; NULL: each rank has `count`. `receive` has room for the
 * sum. In place: send == receive + this rank's offset. */
TSR_API tsr_status tsr_comm_all_gather(tsr_comm *comm, const void *send, void *receive,
                                       int64_t count, const int64_t *counts, tsr_dtype dtype,
                                       tsr_device device, tsr_stream stream);

/**
 * Rank r gets the reduction of part r of every rank's `send`; parts as in tsr_comm_all_gather().
 */
TSR_API tsr_status tsr_comm_reduce_scatter(tsr_comm *comm, const void *send, void *receive,
                                           int64_t count, const int64_t *counts, tsr_dtype dtype,
                                           tsr_reduce_op op, tsr_device device, tsr_stream stream);

/** Reduces the `count` elements of all ranks; every rank gets the result. In place: send ==
 * receive. */
TSR_API tsr_status tsr_comm_all_reduce(tsr_comm *comm, const void *send, void *receive,
                                       int64_t count, tsr_dtype dtype, tsr_reduce_op op,
                                       tsr_device device, tsr_stream stream);

/**
 * Part j of rank i's `send` becomes part i of rank j's `receive`. Every part has `count` elements,
 * unless send_counts[j] and receive_counts[i] (where not NULL) say otherwise. Parts have no gaps.
 */
TSR_API tsr_status tsr_comm_all_to_all(tsr_comm *comm, const void *send, void *receive,
                                       int64_t count, const int64_t *send_counts,
                                       const int64_t *receive_counts, tsr_dtype dtype,
                                       tsr_device device, tsr_stream stream);

/**
 * Sends rows in numbers that are new in each call and that only the sender knows: tokens to
 * experts, packed sequences (MPI_Alltoallv, with the exchange of counts before it). The rows of
 * `send`, in dim 0, are those for rank 0, then those for rank 1, ..: send_counts[r] rows for rank
 * r, this rank too; rows behind them are not sent. `receive` gets the rows of rank 0, then those of
 * rank 1, ..: receive_counts[r] rows of rank r, which the call writes. Its rows behind these are
 * left alone, so dim 0 of `receive` is the room that the caller has. All rows of the call have one
 * dtype and size; both tensors are contiguous, apart, and on one device. Nothing is planned or
 * allocated.
 *
 * TSR_ERROR_MEMORY: more rows come than `receive` has room for; the sentence says how many, and
 * receive_counts, written on this rank all the same, too. The others get TSR_ERROR_PEER, and all
 * may call again with more room. After another error receive_counts and `receive` are undefined.
 */
TSR_API tsr_status tsr_comm_exchange_rows(tsr_comm *comm, const tsr_tensor *send,
                                          const int64_t *send_counts, const tsr_tensor *receive,
                                          int64_t *receive_counts, tsr_stream stream);

/** Copies `buffer` of rank `root` to `buffer` of every rank. */
TSR_API tsr_status tsr_comm_broadcast(tsr_comm *comm, void *buffer, int64_t count, tsr_dtype dtype,
                                      int root, tsr_device device, tsr_stream stream);

/** Sends part r of the root's `send` to rank r; parts as in tsr_comm_all_gather(). `send` is read
 * on the root only. */
TSR_API tsr_status tsr_comm_scatter(tsr_comm *comm, const void *send, void *receive, int64_t count,
                                    const int64_t *counts, tsr_dtype dtype, int root,
                                    tsr_device device, tsr_stream stream);

/** Collects every rank's part, in rank order, in the root's `receive`; parts as in
 * tsr_comm_all_gather(). `receive` is written on the root only. */
TSR_API tsr_status tsr_comm_gather(tsr_comm *comm, const void *send, void *receive, int64_t count,
                                   const int64_t *counts, tsr_dtype dtype, int root,
                                   tsr_device device, tsr_stream stream);

/** One message of an exchange; `data` is read for a send and written for a receive. */
typedef struct tsr_message {
    int peer; /**< its rank in the communicator; never this rank itself */
    void *data;
    size_t bytes;
} tsr_message;

/**
 * Collective: delivers every send to the peer's receive. Between two ranks the k-th send meets the
 * k-th receive. Sends and receives of all ranks must match up, and their bytes must be equal;
 * otherwise every rank gets an error that names both ranks and both sizes. A rank may have no
 * messages. An engine that has messages alone compares nothing first: it checks sizes in its own
 * way, and a rank that is refused for its own lists returns without taking part.
 */
TSR_API tsr_status tsr_comm_exchange(tsr_comm *comm, const tsr_message *sends, size_t send_count,
                                     const tsr_message *receives, size_t receive_count,
                                     tsr_device device, tsr_stream stream);

/**
 * The first half of tsr_comm_exchange(), which does not wait for peers. Peers may call both halves
 * or the whole: the two are the same collective.
 *
 * If it returns TSR_OK the exchange is in flight. Lists and buffers must stay as they are until
 * tsr_comm_exchange_finish() has returned, or tsr_comm_destroy() on a rank that gives up. Until
 * then every other call that communicates over this handle is refused (TSR_ERROR_STATE). After any
 * other status nothing is in flight. Errors that only a comparison of ranks can find come from
 * finish; where ranks are compared, so do faults of this rank's own lists.
 */
TSR_API tsr_status tsr_comm_exchange_start(tsr_comm *comm, const tsr_message *sends,
                                           size_t send_count, const tsr_message *receives,
                                           size_t receive_count, tsr_device device,
                                           tsr_stream stream);

/** The second half: waits until all receives have arrived here and this rank's send buffers are no
 * longer read. Afterwards nothing is in flight, whatever it returns. TSR_ERROR_STATE: no exchange
 * was started, or a plan started it, and tsr_plan_finish() must finish it. */
TSR_API tsr_status tsr_comm_exchange_finish(tsr_comm *comm);

/**
 * Collective: ranks tell one another how their own part of a call went, for code on top of the
 * library. `local` is this rank's status so far. Returns TSR_OK if every rank brought TSR_OK. A
 * rank that brought a failure gets it back with its sentence; the others get TSR_ERROR_PEER with
 * the number and the sentence of the lowest rank that failed. A failure for which this thread has
 * no sentence (tsr_status_set() in sys/status.h makes one) gets "returned io without a sentence".
 * `call` is static text: the name of the caller's call, by which ranks that are in different calls
 * are told apart. NULL: this function's own. The communicator stays usable.
 */
TSR_API tsr_status tsr_comm_share_status(tsr_comm *comm, const char *call, tsr_status local);

#ifdef __cplusplus
}
#endif

#endif
