/**
 * @file
 * Communicators: what MPI_Comm and ncclComm_t are. A handle is one rank's end of a group of ranks.
 *
 * A rank is its handle, never the calling thread: any thread may call for a rank, one call in
 * flight per handle. A second caller gets TSR_ERROR_STATE, naming the call that is in flight, which
 * goes on. Where two ranks are given one handle by mistake the first of them waits for a rank that
 * never calls, and the second is refused. Collective calls must be made by every rank of the
 * communicator, in the same order, with arguments that agree; where they do not, every rank gets
 * TSR_ERROR_ARGUMENT naming the lowest rank that differs from rank 0 and both values. A rank that
 * fails locally, or is given a bad argument, still takes part: it gets its own status, the others
 * get TSR_ERROR_PEER with its rank and sentence, and the communicator stays usable. Refused at
 * once, while peers wait, are only: a handle that is NULL, destroyed or in another call; any other
 * call while an exchange or a plan is started on the handle, and its finish where none is started;
 * a split of a communicator that may not be split; and what tsr_comm_exchange() says of engines
 * that have messages alone. A rank that is lost, has returned or times out breaks the communicator:
 * every later call says so. When such an error comes nothing touches this rank's memory any more,
 * on a device with streams neither: that is the one case in which a call waits for its stream.
 */
#ifndef TESSERA_COMM_H
#define TESSERA_COMM_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/context.h>
#include <tessera/tensor.h>

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
                               overrides */
    int64_t spin;     /**< how often a waiter looks before it sleeps; -1: by the number of cores,
                           0: sleep at once. TSR_SPIN overrides */
    int64_t stall_ms; /**< of tsr_threads_run(), which says for what; 0: for ever, the watch is
                           off. TSR_STALL_MS overrides */
} tsr_threads_options;

/** No timeout; a minute until ranks that all wait are a stall. */
#define TSR_THREADS_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tsr_threads_options), 0, 0, -1, 60000                                               \
    }

/**
 * One rank's program. Returning, with any status, takes the rank out of the communicator and of all
 * that were split off it: peers that still wait for it get TSR_ERROR_PEER. So does the end of its
 * thread by pthread_exit() or cancellation. It must not be left in other ways: a C++ exception that
 * nobody catches ends the process (std::terminate), and a longjmp() out of it has no frame to go
 * to.
 */
typedef tsr_status tsr_rank_main(tsr_comm *comm, void *arg);

/**
 * Runs `main` on `nranks` ranks, each on a thread of its own in this process, and returns when all
 * have returned. `comm` lives for the call of main. Returns TSR_OK if all did, else the status of
 * the rank that failed first for a reason of its own (not TSR_ERROR_PEER), with its sentence and
 * rank; a status whose sentence is not this failure's is told as "returned io without a sentence",
 * and a main that did not return as TSR_ERROR_STATE. TSR_ERROR_MEMORY: there is no thread, or no
 * memory, for so many ranks; none has run. `arg` is shared by all ranks. `options` may be NULL.
 *
 * Where all ranks that are left wait in different communicators, each for somebody who waits in
 * another, they get TSR_ERROR_PEER: within about two seconds if the process has no other threads,
 * else, since any thread may call for a rank, when nothing has changed for options.stall_ms. Until
 * then the log is told of it as a doubt (TSR_LOG_WARN), and of what breaks as an error. A program
 * whose ranks have other threads that may be longer about their next call sets that to 0.
 *
 * A thread that calls for a rank may be cancelled (deferred): while it waits for peers, which get
 * TSR_ERROR_PEER as if the rank had ended, and the communicator is broken. What that call had
 * allocated is not freed. The thread that called tsr_threads_run() itself is cancelled after that
 * has returned.
 */
TSR_API tsr_status tsr_threads_run(int nranks, tsr_rank_main *main, void *arg,
                                   const tsr_threads_options *options);

/**
 * For hosts with threads of their own: fills out[0..nranks) with one handle a rank. The calls of
 * all ranks must be able to block at once. Each is freed with tsr_comm_destroy(), which counts as
 * that rank's return from it. A thread that ends without it leaves peers waiting, until
 * options.timeout_ms or tsr_comm_abort(): here nobody knows which threads are a rank's.
 */
TSR_API tsr_status tsr_comm_create_threads(int nranks, const tsr_threads_options *options,
                                           tsr_comm *out[]);

/**
 * Ends this rank's handle; communicators that were split off it go on. NULL is fine, and one that
 * was ended and is still there. Not collective. Meshes over it, and dtensors with their memory,
 * stay until they are destroyed, in any order and by any thread; calls that communicate over them,
 * or make dtensors on them, return TSR_ERROR_STATE from then on. A call that another thread has in
 * flight on the handle is a mistake: the communicator is aborted, and the call waited for, for ten
 * seconds. If it has not ended by then the handle stays as it is, and the log is told
 * (TSR_LOG_ERROR). So it is at once where this very thread is in a call on the handle, or holds it
 * (tsr_comm_hold()): nothing is aborted then, and the handle can be destroyed after the call.
 */
TSR_API void tsr_comm_destroy(tsr_comm *comm);

/** This handle's rank, and how many ranks there are. Any thread; neither communicates. */
TSR_API int tsr_comm_rank(const tsr_comm *comm);
TSR_API int tsr_comm_size(const tsr_comm *comm);             /**< how many ranks there are */
TSR_API const char *tsr_comm_engine(const tsr_comm *comm);   /**< "threads", "mpi", .. borrowed */
TSR_API tsr_context *tsr_comm_context(const tsr_comm *comm); /**< borrowed, never NULL */

/**
 * What this rank has found out about the ways of moving many bytes on the host
 * (tsr_kernel_choices_get()), in all calls over this communicator, those that it was split off, and
 * those that are split off it. Borrowed, never NULL, good until tsr_comm_destroy(). Any thread;
 * does not communicate.
 */
TSR_API const struct tsr_kernel_choices *tsr_comm_kernel_choices(const tsr_comm *comm);

/** A number for the node of rank `rank` (0 to size - 1): ranks with equal numbers share one. -1 for
 * all: the engine does not know. Meshes over the communicator know the same, until
 * tsr_mesh_with_nodes() says something else. */
TSR_API int tsr_comm_node_of(const tsr_comm *comm, int rank);

/** 1 if both have the same ranks in the same order, as MPI_CONGRUENT says it: they are one handle,
 * or descend from one by tsr_comm_split(). NULL is congruent to NULL alone. Any thread; does not
 * communicate. */
TSR_API int tsr_comm_congruent(const tsr_comm *a, const tsr_comm *b);

/** Collective: ranks of equal `color` form a communicator, ordered by `key`, then by rank; a
 * negative color takes part and gets NULL. The caller owns `*out`, which goes on when `comm` has
 * ended: both are destroyed in any order. */
TSR_API tsr_status tsr_comm_split(tsr_comm *comm, int color, int key, tsr_comm **out);

/** Collective: returns when every rank has called it. Ranks that call something else are told so,
 * as by every collective; not where the engine compares nothing (TSR_COMM_UNCHECKED). */
TSR_API tsr_status tsr_comm_barrier(tsr_comm *comm);

/** Releases everybody who waits in this communicator, its parents or groups, now and later, with
 * TSR_ERROR_PEER. Any thread, at any time. */
TSR_API void tsr_comm_abort(tsr_comm *comm);

/**
 * Waits until what `stream` holds is done, polling for errors of peers; TSR_ERROR_PEER when
 * `timeout_ms` (0: for ever) passes. On the host everything is done already, and rank threads have
 * nothing to poll: over them it returns at once, and who wants to wait for a device's stream asks
 * the device. TSR_ERROR_ARGUMENT: a stream over an engine of host memory alone.
 */
TSR_API tsr_status tsr_comm_wait(tsr_comm *comm, tsr_stream stream, int64_t timeout_ms);

/**
 * Collective: memory for communication, aligned to 64 bytes at least, that peers can read directly
 * where the engine allows; `bytes` may differ between ranks. Freed, in ranks' own time, with
 * tsr_comm_free(), when no call that uses it is under way on any of them; after tsr_comm_destroy()
 * too, while a mesh over `comm` is there.
 */
TSR_API tsr_status tsr_comm_alloc(tsr_comm *comm, size_t bytes, void **out);
/** `bytes` as they were asked for */
TSR_API void tsr_comm_free(tsr_comm *comm, void *memory, size_t bytes);

/*
 * Collectives. Counts are in elements; all buffers of a call are contiguous and on `device`, and
 * used in the order of `stream` (tessera.h). Floating sum, avg and prod are reduced in ascending
 * rank order with one rounding, so that every rank gets the same bits. `send` and `receive` may be
 * the same pointer only where it is said. A buffer of count 0 may be NULL. A host with an index
 * other than 0, or with a stream other than NULL, is a fault of the rank that gives it.
 */

/** Every rank's `counts[r]` elements, in rank order, on every rank. `counts` (one a rank, the same
 * on all) NULL: `count` each. `receive` has room for the sum. In place: send == receive + this
 * rank's offset. */
TSR_API tsr_status tsr_comm_all_gather(tsr_comm *comm, const void *send, void *receive,
                                       int64_t count, const int64_t *counts, tsr_dtype dtype,
                                       tsr_device device, tsr_stream stream);

/** Rank r gets the reduction of the r-th part of everybody's `send`; parts as in
 * tsr_comm_all_gather(). */
TSR_API tsr_status tsr_comm_reduce_scatter(tsr_comm *comm, const void *send, void *receive,
                                           int64_t count, const int64_t *counts, tsr_dtype dtype,
                                           tsr_reduce_op op, tsr_device device, tsr_stream stream);

/** The reduction of everybody's `count` elements, on every rank. In place: send == receive. */
TSR_API tsr_status tsr_comm_all_reduce(tsr_comm *comm, const void *send, void *receive,
                                       int64_t count, tsr_dtype dtype, tsr_reduce_op op,
                                       tsr_device device, tsr_stream stream);

/** Part j of rank i's `send` becomes part i of rank j's `receive`: `count` elements each, or, where
 * they are not NULL, send_counts[j] and receive_counts[i], parts without gaps. */
TSR_API tsr_status tsr_comm_all_to_all(tsr_comm *comm, const void *send, void *receive,
                                       int64_t count, const int64_t *send_counts,
                                       const int64_t *receive_counts, tsr_dtype dtype,
                                       tsr_device device, tsr_stream stream);

/** `buffer` of rank `root`, on every rank. */
TSR_API tsr_status tsr_comm_broadcast(tsr_comm *comm, void *buffer, int64_t count, tsr_dtype dtype,
                                      int root, tsr_device device, tsr_stream stream);

/** Part r of the root's `send` goes to rank r; parts as in tsr_comm_all_gather(). `send` is read on
 * the root only. */
TSR_API tsr_status tsr_comm_scatter(tsr_comm *comm, const void *send, void *receive, int64_t count,
                                    const int64_t *counts, tsr_dtype dtype, int root,
                                    tsr_device device, tsr_stream stream);

/** The other way: every rank's part, in rank order, in the root's `receive`, which is written on
 * the root only. */
TSR_API tsr_status tsr_comm_gather(tsr_comm *comm, const void *send, void *receive, int64_t count,
                                   const int64_t *counts, tsr_dtype dtype, int root,
                                   tsr_device device, tsr_stream stream);

/** One message of an exchange; `data` is read for a send and written for a receive. */
typedef struct tsr_message {
    int peer; /**< rank in the communicator; not this rank itself */
    void *data;
    size_t bytes;
} tsr_message;

/**
 * Collective: delivers every send to the peer's receive. Between two ranks the k-th send meets the
 * k-th receive, and their bytes must be equal (else every rank gets an error naming both ranks and
 * both sizes). Sends and receives of all ranks must match up; a rank may have none. On an engine
 * that only has messages nothing is compared first: there sizes are the engine's to check, and a
 * rank that is refused for its own lists returns without having taken part.
 */
TSR_API tsr_status tsr_comm_exchange(tsr_comm *comm, const tsr_message *sends, size_t send_count,
                                     const tsr_message *receives, size_t receive_count,
                                     tsr_device device, tsr_stream stream);

/**
 * The first half of tsr_comm_exchange(), which does not wait for peers; to them the two halves are
 * the same call as the whole. If it returns TSR_OK the exchange is in flight: lists and buffers
 * stay as they are until tsr_comm_exchange_finish() has returned, or on a rank that gives up
 * tsr_comm_destroy(), and every other call that communicates over this handle is refused until then
 * (TSR_ERROR_STATE). Anything else leaves nothing in flight. What only comes out among ranks, and
 * where ranks are compared a fault of this rank's own lists, comes from finish.
 */
TSR_API tsr_status tsr_comm_exchange_start(tsr_comm *comm, const tsr_message *sends,
                                           size_t send_count, const tsr_message *receives,
                                           size_t receive_count, tsr_device device,
                                           tsr_stream stream);

/** The second half: waits until what was sent here has come, and what was sent from here is not
 * read any more. Afterwards nothing is in flight, whatever it returns. TSR_ERROR_STATE: no exchange
 * was started, or it belongs to a plan, which tsr_plan_finish() goes on with. */
TSR_API tsr_status tsr_comm_exchange_finish(tsr_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
