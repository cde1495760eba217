/**
 * @file
 * The operation table behind a tsr_comm: what an engine implements.
 *
 * A table has a few entries that every engine has, and optional sub-tables. An engine has one or
 * both of these two:
 *
 * - `direct`: a rank reads and writes its peers' memory (rank threads, shared windows, GPUs of one
 *   process). Everything else can be built on a slot per rank and a barrier of all.
 * - `messages`: ranks send bytes to one another. Everything else can be built on one exchange.
 *
 * `memory`, `collectives` and `nodes` are optional. An entry of a given sub-table is required
 * unless its comment says that it is optional; an optional entry may be NULL, and its comment says
 * what stands in for it.
 *
 * Every table begins with its size. An engine compiled with older headers gives shorter tables: the
 * entries that they lack count as NULL. Entries beyond those that the library knows are not read.
 *
 * Every function of these tables gets the `self` that tsr_comm_create_from_table() was given, or
 * that `split` made.
 */
#ifndef TESSERA_SYS_COMM_H
#define TESSERA_SYS_COMM_H

#include <tessera/comm.h>
#include <tessera/sys/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * For tsr_comm_table.flags, of message engines: executions of plans neither compare arguments nor
 * tell peers that a rank failed. A rank that fails aborts the communicator, and peers that wait for
 * it end with the engine's timeout. (Preparing, and every tsr_comm_* collective, compares anyway.)
 */
#define TSR_COMM_UNCHECKED 1u

/** Size in bytes of a rank's slot in a direct engine. */
#define TSR_COMM_SLOT_BYTES 9216

/** An engine's operations. */
typedef struct tsr_comm_table tsr_comm_table;

/** Reports that a call has waited for `seconds` so far, for `ranks` ("rank 1, rank 3", or what is
 * known of them). An engine calls it on the waiting thread, which may be cancelled or not come
 * back. */
typedef void tsr_comm_late(void *arg, int seconds, const char *ranks);

/** Seconds of waiting after which an engine first calls tsr_comm_late; it calls again each time the
 * wait has doubled. */
#define TSR_COMM_LATE_SECONDS 5

/** Access to peers' memory: it may be read and written in place between two meets (barriers). */
typedef struct tsr_comm_direct {
    size_t size; /**< sizeof(tsr_comm_direct) */

    /** The slot of rank `rank`: TSR_COMM_SLOT_BYTES bytes, aligned to 64. Its owner writes it
     * before a meet; all ranks read it between that meet and the next one. */
    void *(*slot)(void *self, int rank);

    /** A barrier: writes of any rank before it are seen by all ranks after it. If a rank has
     * returned, was aborted or is late, every remaining rank gets TSR_ERROR_PEER. */
    tsr_status (*meet)(void *self);

    /**
     * Optional, both or neither: the two halves of a meet, of which arrive does not wait. Every
     * arrive is followed by its await before the next arrive or meet. Some ranks may meet where
     * others arrive and await. A half that fails breaks the communicator as a meet does, and no
     * other half follows. Without them, a started call meets when it is finished.
     */
    tsr_status (*arrive)(void *self);
    tsr_status (*await)(void *self);

    /** Optional: the list of all ranks' slots, valid until `destroy`. Handles of one process can
     * share it; without it each handle keeps a list of its own. */
    void *const *(*slots)(void *self);

    /** Optional, for engines whose ranks may die or be stopped alone: asks the system and returns 1
     * while that rank runs, 0 while it is stopped, -1 once it is dead. No rank then waits for a
     * dead one to let go of memory. Without it all ranks count as running. */
    int (*life)(void *self, int rank);
} tsr_comm_direct;

/** Messages between ranks. */
typedef struct tsr_comm_messages {
    size_t size; /**< sizeof(tsr_comm_messages) */

    /** Collective; see tsr_comm_exchange(). */
    tsr_status (*exchange)(void *self, const tsr_message *sends, size_t send_count,
                           const tsr_message *receives, size_t receive_count, tsr_device device,
                           tsr_stream stream);

    /** Collective. Called with TSR_COMM_UNCHECKED; without that flag tsr_comm_barrier() compares
     * the ranks' calls by exchanges instead. Not called with `direct`, where a meet serves. */
    tsr_status (*barrier)(void *self);

    /**
     * Optional, both or neither: the two halves of an exchange; without them the second half does
     * the whole exchange. Start does not wait for peers; if it fails, no exchange is in flight.
     * Lists and buffers stay as they are until finish, which always ends the exchange. One exchange
     * is in flight at a time. Meanwhile only `abort` and `destroy` may be called; `destroy` drops
     * the exchange.
     */
    tsr_status (*start)(void *self, const tsr_message *sends, size_t send_count,
                        const tsr_message *receives, size_t receive_count, tsr_device device,
                        tsr_stream stream);
    tsr_status (*finish)(void *self);
} tsr_comm_messages;

/** Memory of the engine's own for tsr_comm_alloc(); without this sub-table the context's allocator
 * serves. */
typedef struct tsr_comm_memory {
    size_t size; /**< sizeof(tsr_comm_memory) */

    /** Must not wait for peers. */
    tsr_status (*alloc)(void *self, size_t bytes, void **out);

    /** May be called from any thread, also during another call, and after `leave`. An engine that
     * keeps large freed blocks does so as a tsr_keeper (sys/memory.h). */
    void (*free)(void *self, void *memory, size_t bytes);

    /** This rank's return, when its handle is destroyed. Memory of `alloc` stays as it is until
     * `destroy`, which comes when nothing refers to the communicator any more, perhaps from another
     * thread. Between the two only `free` is called. */
    void (*leave)(void *self);

    /**
     * Optional, for engines whose ranks share some memory: 1 if all ranks read and write these
     * bytes at the same address. Then memory of `alloc` is shared, and `messages` are required.
     * With `direct`, plans first copy other memory to shared memory, and everything but plans goes
     * by messages. Without `direct`, only `exchange` uses it, among the ranks that share. NULL:
     * with `direct` all memory is shared, else no memory is.
     */
    int (*shares)(void *self, const void *memory, size_t bytes);
} tsr_comm_memory;

/**
 * The engine's own collectives. All are optional: in place of each, ranks exchange parts (by nodes
 * where `nodes` knows them) and reduce with the library's kernels. Arguments are those of
 * tsr_comm_all_gather() and so on, in place too, with any dtype and any op that it has. Floating
 * reductions, min and max too, are used only where any order is allowed (TSR_REDUCTION_ANY_ORDER).
 * With `direct` no entry is called.
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

    /** Optional: 1 if `reduce_scatter` and `all_reduce` take this dtype with this op, 0 if the
     * exchange must serve instead. The answer is the same on all ranks, in all groups, always.
     * Without it they take every op that a dtype has. */
    int (*reduces)(void *self, tsr_dtype dtype, tsr_reduce_op op);
} tsr_comm_collectives;

/** Which ranks share a node; without this sub-table that is unknown. */
typedef struct tsr_comm_nodes {
    size_t size; /**< sizeof(tsr_comm_nodes) */

    /** A number from 0 up for the node of a rank: equal for ranks that share a node, and the same
     * on all ranks. Meshes over the communicator take their nodes from it. */
    int (*node_of)(void *self, int rank);

    /** For message engines with `tell_table`: 1 if groups whose ranks share a node are direct. The
     * same on all ranks. */
    int direct;
} tsr_comm_nodes;

/** Entries that every engine has, and its sub-tables. All are copied and need not outlive the call
 * that takes them. */
struct tsr_comm_table {
    size_t size;      /**< sizeof(tsr_comm_table) */
    const char *name; /**< required: "threads" */
    unsigned flags;   /**< TSR_COMM_UNCHECKED or 0 */

    int (*rank)(void *self);  /**< required */
    int (*ranks)(void *self); /**< required: the number of ranks */

    /** Required. May be called from any thread, at any time, more than once. */
    void (*abort)(void *self);

    /** Required. Not collective; counts as this rank's return, unless `memory.leave` has come
     * before. */
    void (*destroy)(void *self);

    /** Collective; see tsr_comm_split(). `*out` is NULL for a negative color, else an object that
     * `destroy` frees. NULL: the communicator may not be split, for example because it is lent. */
    tsr_status (*split)(void *self, int color, int key, void **out);

    /**
     * Optional, for engines whose groups may be of another kind than their parent, such as ranks
     * that share memory within a world that does not. Fills in the whole table of `self`, which
     * `split` has made, with the parent's TSR_COMM_UNCHECKED. If it lacks an entry, that rank
     * refuses it as tsr_comm_create_from_table() does, and the parent's `destroy` frees `self`.
     * Without it the parent's table serves its groups.
     */
    void (*tell_table)(void *self, tsr_comm_table *out);

    /** Optional: gives `self` the function to call when it waits long, until `leave` or `destroy`.
     * Called once, before any call that waits. Without it the log does not report late ranks. */
    void (*tell_late)(void *self, tsr_comm_late *late, void *arg);

    /** Optional: see tsr_comm_wait(), which returns at once without it. */
    tsr_status (*wait)(void *self, tsr_stream stream, int64_t timeout_ms);

    const tsr_comm_direct *direct;           /**< `direct` or `messages` is required */
    const tsr_comm_messages *messages;       /**< required without `direct`, and with
                                                  `memory.shares` */
    const tsr_comm_memory *memory;           /**< optional */
    const tsr_comm_collectives *collectives; /**< optional */
    const tsr_comm_nodes *nodes;             /**< optional */
};

/**
 * A communicator over an engine's `self`, which it owns from then on and frees with table->destroy.
 * The table and its sub-tables are copied; `context` is retained, NULL: defaults.
 * TSR_ERROR_ARGUMENT: a table is smaller than its first version, or lacks a required entry, which
 * the sentence names ("messages.exchange"); `self` then stays the caller's.
 */
TSR_API tsr_status tsr_comm_create_from_table(tsr_context *context, const tsr_comm_table *table,
                                              void *self, tsr_comm **out);

/**
 * The function that a shared object exports as `tessera_conformance`, so that the program
 * tessera-conformance can test its engine: makes a communicator for rank `rank` of `ranks`. Every
 * rank of a run calls it once, each in a process or, with --threads, in a thread of its own. Ranks
 * of a run find one another by `directory`, which is empty at first; files left there are removed
 * after the run. A rank that waits for another for more than `timeout_ms` gives up with
 * TSR_ERROR_PEER; 0 waits for ever.
 */
typedef tsr_status tsr_comm_conformance(const char *directory, int rank, int ranks,
                                        int64_t timeout_ms, tsr_comm **out);

/**
 * Adds a reference, for an object that refers to a communicator and may outlive it, as meshes do;
 * NULL is fine. After tsr_comm_destroy() the handle stays until the last reference goes: it knows
 * its rank, size, engine's name and context, and refuses calls that communicate (TSR_ERROR_STATE).
 * Any thread; does not communicate.
 */
TSR_API tsr_comm *tsr_comm_retain(tsr_comm *comm);

TSR_API void tsr_comm_release(tsr_comm *comm); /**< gives a reference back; NULL is fine */

/**
 * Makes several calls over `comm` count as one call, such as a layer's: from here to
 * tsr_comm_let_go() the handle is in `call`, static text ("tsr_linear"), which sentences and the
 * log name. Calls of this thread go on, further holds too; calls of other threads are refused as
 * during any call. Does not communicate. TSR_ERROR_STATE: the handle is in a call or destroyed, and
 * is not held. TSR_ERROR_ARGUMENT: `comm` is NULL.
 */
TSR_API tsr_status tsr_comm_hold(tsr_comm *comm, const char *call);

/** Ends a hold of tsr_comm_hold(), on the thread that holds. Returns `status`, the result of the
 * held call. Does not communicate. TSR_ERROR_STATE: this thread does not hold the handle; nothing
 * changes. TSR_ERROR_ARGUMENT: `comm` is NULL. */
TSR_API tsr_status tsr_comm_let_go(tsr_comm *comm, tsr_status status);

/** For calls that do not communicate: returns TSR_ERROR_STATE after tsr_comm_destroy(), with a
 * sentence that begins with `call`. Any thread. TSR_ERROR_ARGUMENT: `comm` is NULL. */
TSR_API tsr_status tsr_comm_check_open(const tsr_comm *comm, const char *call);

#ifdef __cplusplus
}
#endif

#endif
