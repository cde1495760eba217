/**
 * How the host's kernels choose the way in which they move many bytes (base/ways.h): by timing the ways on pieces of the moves
 * themselves.
 *
 * A large call is divided into stretches of a few MiB, and each stretch goes in one way and is timed. The first stretches of a class try
 * every way; from then on the way with the best times is taken, close rivals get a stretch now and then, and all ways are tried again when
 * the best one has become slow. Classes are told apart by what the kernel does, by the length of runs and by the size of the call.
 *
 * The state belongs to a rank: a communicator makes it, and those that are split off share it. Any thread may use and read it
 * without a lock: numbers are written and read one by one, and a lost sample is one sample less.
 */
#ifndef TSR_DEVICE_HOST_CHOOSE_H
#define TSR_DEVICE_HOST_CHOOSE_H

#include "base/references.h"
#include "base/ways.h"
#include <stdint.h>
#include <tessera/sys/device.h>

/** Calls that write fewer bytes than this stay in the cache and are never timed. Measured on two threads of a processor with 1 MiB of
 * second- and 32 MiB of third-level cache: streaming alone is faster from 4 MiB a call on, but slower up to 8 MiB where somebody then
 * reads the result, and somebody does. */
#define TSR_LARGE_CALL ((size_t)8 << 20)

/** Runs shorter than this always go by ordinary stores: their first and last lines are partial, and too many of their lines. */
#define TSR_SHORTEST_RUN ((size_t)256)

/** The rule streams runs from here on. Measured against ordinary stores: 0.4 of the speed at 256 bytes, 0.8 at 512, 1.7 at 1,024. */
#define TSR_STREAMED_RUN ((size_t)1024)

/** What kernels do: copies, reductions to one destination, reductions to several. */
typedef enum tsr_task { TSR_TASK_COPY, TSR_TASK_REDUCE, TSR_TASK_REDUCE_TO_ALL, TSR_TASKS } tsr_task;

#define TSR_RUN_CLASSES  5
#define TSR_SIZE_CLASSES 3
#define TSR_SAMPLES      5

/** What is known of a class. All fields are atomic, and relaxed. */
typedef struct tsr_way_class {
    uint32_t samples[TSR_WAYS][TSR_SAMPLES]; /**< nanoseconds a MiB, the latest ones in a ring */
    uint8_t counts[TSR_WAYS];                /**< samples since all ways were tried last, TSR_SAMPLES at most */
    uint8_t places[TSR_WAYS];                /**< of the ring: where the next sample goes */
    uint8_t way;                             /**< the best one, once `settled` */
    uint8_t settled;                         /**< 0 while all ways are tried */
    uint8_t changes;                         /**< how often another way became the best, 255 at most */
    uint8_t restarts;                        /**< how often all ways were tried again, likewise */
    uint32_t reference;                      /**< the least that the best one has taken since it became that */
    uint32_t stretches;                      /**< since all ways were tried last */
    uint32_t next_rival;                     /**< the stretch at which a rival is tried again */
    uint32_t restart_wait;                   /**< stretches before slowness has all ways tried again */
} tsr_way_class;

struct tsr_kernel_choices {
    tsr_references references;
    tsr_context *context;        /**< whose memory this is, retained; NULL: static */
    tsr_way way;                 /**< TSR_WAY_MEASURED, TSR_WAY_FIXED, or the one for all large calls */
    size_t large;                /**< TSR_LARGE_CALL; tests take less */
    uint64_t (*now)(void *user); /**< nanoseconds of this thread */
    void *user;
    const tsr_kernel_choices *whole; /**< of choices for parts of large moves: those of the moves; else NULL */
    tsr_kernel_choices *parts;       /**< those for parts of moves that go by these; NULL: of parts themselves */
    tsr_way_class *at;               /**< by task, class of runs, class of sizes; NULL: nothing is measured */
};

/** Adds an owner, and takes one away; NULL is fine. The first owner is the caller of tsr_kernel_choices_create(). */
tsr_kernel_choices *tsr_choices_retain(tsr_kernel_choices *choices);

/** Static choices that take `way` in all large calls; NULL, which goes by the rule, for TSR_WAY_FIXED and TSR_WAY_MEASURED. */
tsr_kernel_choices *tsr_choices_pinned(tsr_way way);

/** The class of a task, of runs of `run` bytes, of calls that write `total` bytes. */
tsr_way_class *tsr_way_class_find(const tsr_kernel_choices *choices, tsr_task task, size_t run, size_t total);

/**
 * What calls take as `self` that each write a part of a large move, from memory that the cache holds: `self` is what a call of the whole
 * move would take. From TSR_LARGE_PART bytes on they stream what the best way of large calls streams. Nothing is timed.
 */
const tsr_kernel_choices *tsr_choices_of_parts(const tsr_kernel_choices *self);

#define TSR_LARGE_PART ((size_t)64 << 10)

/** One call's way through the choices, on the stack. */
typedef struct tsr_stretch {
    const tsr_kernel_choices *choices; /**< NULL: by the rule */
    tsr_way_class *choice;             /**< of the class that the call is in; NULL: nothing is timed */
    tsr_task task;
    tsr_way way;
    size_t total;   /**< of the call */
    size_t bytes;   /**< of the stretch so far */
    size_t timed;   /**< of them, those whose time is taken */
    uint64_t since; /**< when that began */
} tsr_stretch;

/** Begins a call that writes `total` bytes, and returns `s`, or NULL where they are few: then all goes by ordinary stores. `self` is what
 * the operation table was given. */
static inline tsr_stretch *tsr_stretch_begin(tsr_stretch *s, const tsr_kernel_choices *self, tsr_task task, size_t total)
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

/** What follows has runs of `run` bytes. `s` is not NULL, here and below. */
void tsr_stretch_enter_run(tsr_stretch *s, size_t run);

/** tsr_stretch_next() of a class that is timed. */
tsr_way tsr_stretch_time(tsr_stretch *s, size_t bytes);

/** The way for the next `bytes` bytes: pieces of up to TSR_PIECE, all of them moved when the next call comes. `s` may be NULL. */
static inline tsr_way tsr_stretch_next(tsr_stretch *s, size_t bytes)
{
    if (!s)
        return TSR_WAY_PLAIN;
    return s->choice ? tsr_stretch_time(s, bytes) : s->way;
}

/** Ends the call, all bytes of which are moved. */
void tsr_stretch_end(tsr_stretch *s);

#define TSR_PIECE ((size_t)512 << 10)

/** Lower bounds of classes: bytes of a run, of a call. `index` one past the last: SIZE_MAX. */
size_t tsr_run_class_begin(int index);
size_t tsr_size_class_begin(int index);

/** The way of runs of `run` bytes in large calls where nothing is measured. `choices` may be NULL. */
tsr_way tsr_choices_rule(const tsr_kernel_choices *choices, size_t run);

/** What a way takes, in nanoseconds a MiB: the second least of five samples, the least of up to three, since what disturbs them only adds
 * to them. 0: there is none. */
uint32_t tsr_way_class_estimate(const tsr_way_class *choice, tsr_way way);

#endif
