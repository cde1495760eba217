/**
 * How the host's kernels choose the way in which they move many bytes (base/ways.h): they time the
 * ways on parts of real moves.
 *
 * A large call is divided into stretches of a few MiB; each stretch goes in one way and is timed.
 * The first stretches of a class try every way; from then on the fastest way is taken, close rivals
 * get a stretch now and then, and all ways are tried again when the fastest way has become much
 * slower or faster than it was. A class is a task of the kernel, a range of run lengths and a range
 * of call sizes.
 *
 * The state belongs to a rank: a communicator makes it, and communicators that are split off share
 * it. Any thread may use and read it without a lock: each number is read and written atomically,
 * and a sample may be lost.
 */
#ifndef TSR_DEVICE_HOST_CHOOSE_H
#define TSR_DEVICE_HOST_CHOOSE_H

#include "base/references.h"
#include "base/ways.h"

#include <tessera/sys/device.h>

#include <stdint.h>

/** Calls that write fewer bytes use ordinary stores, and are never timed. Measured on two threads
 * of a processor with 1 MiB of second- and 32 MiB of third-level cache: streaming itself is faster
 * from 4 MiB a call on, but up to 8 MiB it is slower once the result is read again, as results
 * are. */
#define TSR_LARGE_CALL ((size_t)8 << 20)

/** Shorter runs always go by ordinary stores: their first and last cache lines are partial, which
 * is too large a share of their lines. */
#define TSR_SHORTEST_RUN ((size_t)256)

/** The fixed rule streams runs of at least this many bytes. Measured speed of streaming over that
 * of ordinary stores: 0.4 at 256 bytes, 0.8 at 512, 1.7 at 1,024. */
#define TSR_STREAMED_RUN ((size_t)1024)

/** The tasks of kernels: copies, reductions to one destination, reductions to several. */
typedef enum tsr_task { TSR_TASK_COPY, TSR_TASK_REDUCE, TSR_TASK_REDUCE_TO_ALL, TSR_TASKS } tsr_task;

#define TSR_RUN_CLASSES  5
#define TSR_SIZE_CLASSES 3
#define TSR_SAMPLES      5

/** The state of a class. All fields are read and written atomically, with relaxed order. */
typedef struct tsr_way_class {
    uint32_t samples[TSR_WAYS][TSR_SAMPLES]; /**< per way a ring of its latest times, in nanoseconds per MiB */
    uint8_t counts[TSR_WAYS]; /**< per way: samples since the last trial of all ways, TSR_SAMPLES at most */
    uint8_t places[TSR_WAYS]; /**< per way: the place in its ring for the next sample */
    uint8_t way;              /**< the fastest way; valid if `settled` */
    uint8_t settled;          /**< 0 while all ways are tried, then 1 */
    uint8_t changes;          /**< how often another way became the fastest, 255 at most */
    uint8_t restarts;         /**< how often all ways were tried again, 255 at most */
    uint32_t tried;           /**< the estimate of `way` when it became the fastest, in nanoseconds per MiB */
    uint32_t reference;       /**< the least estimate of `way` since then, in nanoseconds per MiB */
    uint32_t stretches;       /**< samples since the last trial of all ways ended */
    uint32_t next_rival;      /**< the value of `stretches` at which a rival is tried */
    uint32_t restart_wait;    /**< the value of `stretches` above which another speed restarts the trial of all ways */
} tsr_way_class;

struct tsr_kernel_choices {
    tsr_references references;
    tsr_context *context; /**< the context whose memory this is, retained; NULL: static memory */
    tsr_way way;          /**< TSR_WAY_MEASURED, TSR_WAY_FIXED, or the way of all large calls */
    size_t large; /**< bytes from which a call is large: TSR_LARGE_CALL, or TSR_LARGE_PART for parts; tests take less */
    uint64_t (*now)(void *user); /**< nanoseconds, by the thread's own clock */
    void *user;
    const tsr_kernel_choices *whole; /**< in choices for parts of moves: the choices for whole moves; else NULL */
    tsr_kernel_choices *parts;       /**< in choices for whole moves: the choices for parts of them; else NULL */
    tsr_way_class *at;               /**< by task, class of runs, class of sizes; NULL: nothing is measured */
};

/** Adds a reference and returns `choices`; NULL is fine. tsr_kernel_choices_destroy() drops it. */
tsr_kernel_choices *tsr_choices_retain(tsr_kernel_choices *choices);

/** Static choices that take `way` in all large calls; NULL, which means the fixed rule, for
 * TSR_WAY_FIXED and TSR_WAY_MEASURED. */
tsr_kernel_choices *tsr_choices_pinned(tsr_way way);

/** The class for `task`, runs of `run` bytes and calls that write `total` bytes. */
tsr_way_class *tsr_way_class_find(const tsr_kernel_choices *choices, tsr_task task, size_t run, size_t total);

/**
 * The `self` for calls that each write a part of a large move, from memory that the cache holds;
 * `self` is that for the whole move. A part of at least TSR_LARGE_PART bytes streams the runs that
 * the fastest way of large calls streams. Nothing is timed.
 */
const tsr_kernel_choices *tsr_choices_of_parts(const tsr_kernel_choices *self);

/** Parts that write fewer bytes use ordinary stores. */
#define TSR_LARGE_PART ((size_t)64 << 10)

/** The state of one large call, on its stack: the current stretch. */
typedef struct tsr_stretch {
    const tsr_kernel_choices *choices; /**< NULL: the fixed rule */
    tsr_way_class *choice;             /**< the class of the current runs; NULL: nothing is timed */
    tsr_task task;
    tsr_way way;    /**< the way of the current stretch */
    size_t total;   /**< bytes that the call writes */
    size_t bytes;   /**< bytes of the stretch so far */
    size_t timed;   /**< bytes of the stretch moved since `since` */
    uint64_t since; /**< when timing began, in nanoseconds; 0: not yet */
} tsr_stretch;

/** Begins a call that writes `total` bytes and returns `s`; NULL if the call is not large: then all
 * its stores are ordinary. `self` is the self of the operation table's entry. */
static inline tsr_stretch *tsr_stretch_begin(tsr_stretch *s, const tsr_kernel_choices *self, tsr_task task,
                                             size_t total)
{
    if (total < (self ? self->large : TSR_LARGE_CALL))
        return NULL;
    s->choices = self;
    s->choice = NULL;
    s->task = task;
    s->way = TSR_WAY_PLAIN;
    s->total = total;
    return s;
}

/** From here on, the call moves runs of `run` bytes. `s` is not NULL. */
void tsr_stretch_enter_run(tsr_stretch *s, size_t run);

/** tsr_stretch_next() for a call that is timed (s->choice is not NULL). */
tsr_way tsr_stretch_time(tsr_stretch *s, size_t bytes);

/** The way for the next `bytes` bytes, about TSR_PIECE. The caller moves them all before it calls
 * again. `s` may be NULL: ordinary stores. */
static inline tsr_way tsr_stretch_next(tsr_stretch *s, size_t bytes)
{
    if (!s)
        return TSR_WAY_PLAIN;
    return s->choice ? tsr_stretch_time(s, bytes) : s->way;
}

/** Ends the call after all its bytes are moved. `s` is not NULL. */
void tsr_stretch_end(tsr_stretch *s);

/** Bytes that callers move between two calls of tsr_stretch_next(). */
#define TSR_PIECE ((size_t)512 << 10)

/** The least bytes of a run in the index-th class of runs; SIZE_MAX behind the last class. */
size_t tsr_run_class_begin(int index);

/** The least bytes of a call in the index-th class of sizes; SIZE_MAX behind the last class. */
size_t tsr_size_class_begin(int index);

/** The way of runs of `run` bytes in large calls that are not timed. `choices` may be NULL. */
tsr_way tsr_choices_rule(const tsr_kernel_choices *choices, size_t run);

/** The time of a way in nanoseconds per MiB: the second least of four or five samples, the least of
 * up to three, because disturbances only add time. 0: there is no sample. */
uint32_t tsr_way_class_estimate(const tsr_way_class *choice, tsr_way way);

#endif
