/**
 * @file
 * What an engine implements: the operation table behind a tsr_comm.
 *
 * A table has a few entries that every engine has, and sub-tables that are there or not. An engine
 * gives one of these two, or both:
 *
 * - `direct`: a rank reads and writes its peers' memory (rank threads, shared windows, GPUs of one
 *   process). Everything else can be built on a slot for each rank and a meeting of all.
 * - `messages`: ranks send bytes to one another. Everything else can be built on one exchange.
 *
 * `memory`, `collectives` and `nodes` are optional. In a sub-table that is there an entry is
 * required unless its comment says that it is optional; an optional entry may be NULL, and its
 * comment says what stands in for it.
 *
 * Every table begins with its size. An engine that was compiled with older headers gives shorter
 * tables: entries that it does not know are NULL. Entries beyond what the library knows are not
 * read.
 */
#ifndef TESSERA_SYS_COMM_H
#define TESSERA_SYS_COMM_H

#include <tessera/comm.h>
#include <tessera/sys/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** In `flags`, of message engines: executions of plans do not compare arguments, nor tell peers
 * that a rank failed. Such a rank aborts the communicator, and peers that wait for it end with the
 * engine's timeout. (Preparing, and every tsr_comm_* collective, compares anyway.) */
#define TSR_COMM_UNCHECKED 1u

/** Bytes of a rank's slot in a direct engine. */
#define TSR_COMM_SLOT_BYTES 9216

/** An engine's operations. */
typedef struct tsr_comm_table tsr_comm_table;

/** For engines: a call waits, for `seconds` by now, for `ranks` ("rank 1, rank 3", or what is known
 * of them). Called by the thread that waits, which may be cancelled or not come back. */
typedef void tsr_comm_late(void *arg, int seconds, const char *ranks);

/**
 * Seconds after which an engine calls that; it does so again each time that the wait has doubled.
 */
#define TSR_COMM_LATE_SECONDS 5

/* Every function of these tables gets the `self` that tsr_comm_create_from_table() was given, or
 * that `split` made. */

/** Ranks reach their peers' memory: it may be read and written in place between two meets. */
typedef struct tsr_comm_direct {
    size_t size; /**< sizeof(tsr_comm_direct) */

    /** TSR_COMM_SLOT_BYTES bytes of rank `rank`, aligned to 64: written by its owner before a meet,
     * read by all between that meet and the next one. */
    void *(*slot)(void *self, int rank);

    /** A barrier: what was written before it by any rank is seen after it by all. TSR_ERROR_PEER,
     * on every rank that is left, when a rank has returned, was aborted or is late. */
    tsr_status (*meet)(void *self);

    /**
     * Optional, both or neither: a meet in two halves, the first of which does not wait; without
     * them a call that was started meets when it is finished. Every arrive is followed by its await
     * before the next arrive or meet, and some ranks may meet where others arrive and await. One
     * that fails breaks the communicator as a meet does, and is the last of the two.
     */
    tsr_status (*arrive)(void *self);
    tsr_status (*await)(void *self);

    /** Optional: what `slot` gives for each rank, in a list that is there until `destroy`. Handles
     * of one process can share it; without it each keeps a list of its own. */
    void *const *(*slots)(void *self);

    /** Optional, of engines whose ranks may die or be stopped alone: 1 while that rank runs, 0
     * while it is stopped, -1 once it is dead, so that nobody waits for it to let go of memory.
     * Without it all ranks run. Asks the system. */
    int (*life)(void *self, int rank);
} tsr_comm_direct;

/** Ranks send one another messages. */
typedef struct tsr_comm_messages {
    size_t size; /**< sizeof(tsr_comm_messages) */

    /** Collective; see tsr_comm_exchange(). */
    tsr_status (*exchange)(void *self, const tsr_message *sends, size_t send_count,
                           const tsr_message *receives, size_t receive_count, tsr_device device,
                           tsr_stream stream);

    /** Collective. Called with TSR_COMM_UNCHECKED; without it tsr_comm_barrier() compares what
     * ranks call, by exchanges. With `direct` it is not called: a meet stands in. */
    tsr_status (*barrier)(void *self);

    /**
     * Optional, both or neither; without them finish does the whole exchange. Start does not wait
     * for peers, and an exchange that it fails to start is not in flight; lists and buffers stay as
     * they are until finish, which ends it in any case. One is in flight at a time, and nothing
     * else is called meanwhile but `abort` and `destroy`, which drops it.
     */
    tsr_status (*start)(void *self, const tsr_message *sends, size_t send_count,
                        const tsr_message *receives, size_t receive_count, tsr_device device,
                        tsr_stream stream);
    tsr_status (*finish)(void *self);
} tsr_comm_messages;

/** What tsr_comm_alloc() gives is the engine's; without this sub-table it is the context's
 * allocator's. */
typedef struct tsr_comm_memory {
    size_t size; /**< sizeof(tsr_comm_memory) */

    /** Waits for no peer. */
    tsr_status (*alloc)(void *self, size_t bytes, void **out);

    /** May come from any thread, also during another call, and after `leave`; what it keeps of
     * large blocks is a tsr_keeper's (sys/memory.h). */
    void (*free)(void *self, void *memory, size_t bytes);

    /** This rank's return, when its handle is destroyed. What `alloc` has given stays as it is
     * until `destroy`, which comes when nothing refers to the communicator any more, perhaps from
     * another thread; between the two nothing but `free` is called. */
    void (*leave)(void *self);

    /**
     * Optional, of engines whose ranks share some memory: 1 if these bytes are where all ranks read
     * and write them, at the same address. What `alloc` gives is shared then, and `messages` are
     * required: with `direct` plans copy other memory to where it is shared first, and everything
     * but plans goes by messages. Without `direct` only `exchange` makes use of it, among those
     * ranks that share. NULL: with `direct` all memory is shared, else none.
     */
    int (*shares)(void *self, const void *memory, size_t bytes);
} tsr_comm_memory;

/**
 * Collectives of the engine's own. All are optional: exchange of parts stands in for each, by nodes
 * where `nodes` tells them, with our own kernels where values are reduced. Arguments are those of
 * tsr_comm_all_gather() and so on, in place too, and of any dtype with any op that it has. Floating
 * reductions, min and max too, are used only where any order is allowed (TSR_REDUCTION_ANY_ORDER).
 * With `direct` none of them is called.
 */
typedef struct tsr_comm_collectives {
    size_t size; /**< sizeof(tsr_comm_collectives) */

    tsr_status (*all_gather)(void *self, const void *send, void *receive, int64_t count,
                             tsr_dtype dtype, tsr_device device, tsr_stream stream);
    tsr_status (*reduce_scatter)(void *self, const void *send, void *receive, int64_t count,
                                 tsr_dtype dtype, tsr_reduce_op op, tsr_device device,
                                 tsr_stream stream);
    tsr_status (*all_reduce)(void *self, const void *send, void *receive, int64_t count,
                             tsr_dtype dtype, tsr_reduce_op op, tsr_device device,
                             tsr_stream stream);
    tsr_status (*broadcast)(void *self, void *buffer, int64_t count, tsr_dtype dtype, int root,
                            tsr_device device, tsr_stream stream);

    /** Optional: 1 if `reduce_scatter` and `all_reduce` take this dtype with this op, 0 if exchange
     * is to stand in. The same on all ranks, in all groups, always. Without it they take every op
     * that a dtype has. */
    int (*reduces)(void *self, tsr_dtype dtype, tsr_reduce_op op);
} tsr_comm_collectives;

/** Which ranks share a node; without this sub-table it is not known. */
typedef struct tsr_comm_nodes {
    size_t size; /**< sizeof(tsr_comm_nodes) */

    /** A number from 0 up for the node of a rank, the same for ranks that share one, and the same
     * on all ranks; meshes over the communicator know nodes by it. */
    int (*node_of)(void *self, int rank);

    /** 1: groups whose ranks share a node are direct, of message engines with `tell_table`. The
     * same on all ranks. */
    int direct;
} tsr_comm_nodes;

/** What every engine has, and its sub-tables. All are copied, so they need not outlive the call
 * that they are given to. */
struct tsr_comm_table {
    size_t size;      /**< sizeof(tsr_comm_table) */
    const char *name; /**< required: "threads" */
    unsigned flags;   /**< TSR_COMM_UNCHECKED or 0 */

    int (*rank)(void *self);  /**< required */
    int (*ranks)(void *self); /**< required: how many there are */

    /** Required. Any thread, at any time, more than once. */
    void (*abort)(void *self);

    /** Required. Not collective; counts as this rank's return, unless `memory.leave` has come
     * before. */
    void (*destroy)(void *self);

    /** Collective; see tsr_comm_split(). `*out` is NULL for a negative color, else what `destroy`
     * frees. NULL: the communicator may not be split, as one that is lent. */
    tsr_status (*split)(void *self, int color, int key, void **out);

    /**
     * Optional, of engines whose groups may be of another kind than what they are split off, such
     * as ranks that share memory within a world that does not: fills in all of the table of `self`,
     * which `split` has made, with the parent's TSR_COMM_UNCHECKED. One that lacks an entry is
     * refused as tsr_comm_create_from_table() does, on that rank, and the parent's `destroy` ends
     * `self`. Without it the parent's table serves its groups.
     */
    void (*tell_table)(void *self, tsr_comm_table *out);

    /** Optional: what `self` is to call where it waits long, until `leave` or `destroy`. Set once,
     * before any call that waits. Without it the log does not hear of ranks that are late. */
    void (*tell_late)(void *self, tsr_comm_late *late, void *arg);

    /** Optional; nothing stands in: without it tsr_comm_wait() returns at once. */
    tsr_status (*wait)(void *self, tsr_stream stream, int64_t timeout_ms);

    const tsr_comm_direct *direct;           /**< this or `messages` is required */
    const tsr_comm_messages *messages;       /**< required without `direct`, and with
                                                  `memory.shares` */
    const tsr_comm_memory *memory;           /**< optional */
    const tsr_comm_collectives *collectives; /**< optional */
    const tsr_comm_nodes *nodes;             /**< optional */
};

/**
 * A communicator over an engine's `self`, which it owns from then on (also frees with
 * table->destroy). The table and its sub-tables are copied; `context` is retained, NULL for
 * defaults. TSR_ERROR_ARGUMENT: a table is smaller than its first version, or lacks a required
 * entry, which the sentence names ("messages.exchange"); `self` then stays the caller's.
 */
TSR_API tsr_status tsr_comm_create_from_table(tsr_context *context, const tsr_comm_table *table,
                                              void *self, tsr_comm **out);

/**
 * What a shared object exports as `tessera_conformance`, so that the program tessera-conformance
 * can test its engine: makes a communicator for rank `rank` of `ranks`. Called once by every rank
 * of a run, each in a process or, with --threads, in a thread of its own. Ranks of a run find one
 * another by `directory`, which is empty at first; what is left there is removed after the run. A
 * rank that waits for another for more than `timeout_ms` gives up with TSR_ERROR_PEER; 0 waits for
 * ever.
 */
typedef tsr_status tsr_comm_conformance(const char *directory, int rank, int ranks,
                                        int64_t timeout_ms, tsr_comm **out);

/**
 * For what refers to a communicator and may outlive it, as meshes do: one reference more, and one
 * back; NULL is fine. After tsr_comm_destroy() the handle is there until the last reference goes,
 * knows its rank, size, engine's name and context, and refuses calls that communicate
 * (TSR_ERROR_STATE). Any thread; neither communicates.
 */
TSR_API tsr_comm *tsr_comm_retain(tsr_comm *comm);

TSR_API void tsr_comm_release(tsr_comm *comm); /**< gives one reference back */

/**
 * For a call that is made of several calls over `comm`, as a layer's is: from here to
 * tsr_comm_let_go() the handle is in `call`, static text ("tsr_linear"), which sentences and the
 * log name. Calls of this thread go on, further holds too; those of other threads are refused as by
 * any call in flight. Does not communicate. TSR_ERROR_STATE: the handle is in a call, or destroyed;
 * then it is not held. TSR_ERROR_ARGUMENT: `comm` is NULL.
 */
TSR_API tsr_status tsr_comm_hold(tsr_comm *comm, const char *call);

/** Ends a hold of tsr_comm_hold(), by the thread that holds. Returns `status`, with which the call
 * ends. Does not communicate. TSR_ERROR_STATE: this thread does not hold the handle, and nothing
 * changes. TSR_ERROR_ARGUMENT: `comm` is NULL. */
TSR_API tsr_status tsr_comm_let_go(tsr_comm *comm, tsr_status status);

/** For calls that do not communicate: TSR_ERROR_STATE after tsr_comm_destroy(), in a sentence that
 * begins with `call`. Any thread. TSR_ERROR_ARGUMENT: `comm` is NULL. */
TSR_API tsr_status tsr_comm_check_open(const tsr_comm *comm, const char *call);

#ifdef __cplusplus
}
#endif

#endif
