/**
 * @file
 * Times plans and other collective calls as `tessera bench` does, for harnesses of your own. This
 * is the library libtessera-bench (pkg-config tessera-bench), which needs libtessera-core alone.
 *
 * @par A time
 * All ranks meet in a barrier, make a call, wait for their streams, and meet again. The time of an
 * iteration is that of its slowest rank, from barrier to barrier. A call that is too short to be
 * timed alone is made several times in between, and the mean is taken; one more call before these
 * is not timed, so that caches hold their data.
 *
 * @par In turns
 * What is compared is measured in turns, so that other load slows all of it alike. Plain copies of
 * as many bytes as the call writes run in turns with it. The best of them, by its median, is the
 * peak, which no move can beat by much: memcpy() or streaming stores, by as many threads as there
 * are ranks but at most as many as cores, by one thread in each process, or the device's own copy.
 *
 * @par Ranks
 * All functions that take a communicator are collective over it, and all ranks get the same result.
 * If one rank fails, the measurement ends on all: that rank gets its own status, the others get
 * TSR_ERROR_PEER with its sentence, and the communicator stays usable. So a callback may fail on
 * one rank alone while its peers wait for it in a call over this communicator. Only where they
 * wait elsewhere (in another communicator, in MPI itself, in an engine with TSR_COMM_UNCHECKED, in
 * tsr_comm_exchange() over an engine that has messages alone) must it end their wait, as
 * tsr_comm_abort() does.
 */
#ifndef TESSERA_BENCH_H
#define TESSERA_BENCH_H

#include <tessera/comm.h>
#include <tessera/plan.h>
#include <tessera/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The most iterations, warm-ups and calls that options may ask for. */
#define TSR_BENCH_MOST_ITERATIONS 1000000

/** The most subjects of tsr_bench_turns(). */
#define TSR_BENCH_MOST_SUBJECTS 32

/** How to measure. All ranks give the same, but for the device, the stream and the callback. */
typedef struct tsr_bench_options {
    size_t size;         /**< sizeof(tsr_bench_options) */
    int64_t iterations;  /**< number of times that are kept, at least 1 */
    int64_t warm_ups;    /**< number of iterations before, whose times are dropped */
    int64_t calls;       /**< number of calls in an iteration, of which its time is the mean; 0: as
                              many as take loop_seconds */
    double loop_seconds; /**< approximate seconds of an iteration where `calls` is 0 */
    double warm_seconds; /**< approximate seconds of calls before everything else; 0: only the
                              calls that tell how many take loop_seconds */
    double most_seconds; /**< seconds from the first call on after which no iteration begins, but
                              for the first that is kept: fewer may be kept; 0: no limit */
    int no_check;        /**< 1: results are not checked */
    int no_copy;         /**< 1: no plain copies are measured */
    tsr_device device;   /**< the rank's memory, and the device of its stream */
    tsr_stream stream;   /**< on which the calls enqueue, and which the clock waits for */
    void (*step)(void *arg); /**< called after each iteration, with step_arg, as for a line of
                                  progress; may be NULL */
    void *step_arg;
} tsr_bench_options;

/** Eleven iterations after two warm-ups, each of as many calls as take 0.2 ms: far longer than a
 * barrier. On the host, without a time limit, with copies and checks. */
#define TSR_BENCH_OPTIONS_INIT                                                                     \
    {                                                                                              \
        sizeof(tsr_bench_options), 11, 2, 0, 2e-4, 0, 0, 0, 0, {TSR_NULL, 0}, TSR_NULL, TSR_NULL,  \
            TSR_NULL                                                                               \
    }

/** A call of one rank; `arg` is the subject's. */
typedef tsr_status tsr_bench_body(tsr_comm *comm, void *arg);

/** What is measured: one rank's part of a collective call, or work of its own. Callbacks may
 * communicate over `comm`. They return only statuses with a sentence (tsr_status_set()), or with
 * none. */
typedef struct tsr_bench_subject {
    tsr_bench_body *call; /**< the call that is timed; on a device with streams it may just
                               enqueue */
    /** In place of `call`: measures by itself, as by events of a device, and writes the seconds of
     * one call on this rank. It begins after a barrier. */
    tsr_status (*measure)(tsr_comm *comm, void *arg, double *seconds);
    tsr_bench_body *prepare; /**< called before each iteration, and not timed; may be NULL. What
                                  every single call needs anew needs options.calls 1 */
    /** Called after the last iteration: adds the wrong elements of this rank's result to `*wrong`.
     * May be NULL. */
    tsr_status (*check)(tsr_comm *comm, void *arg, int64_t *wrong);
    void *arg;    /**< for all of these */
    size_t bytes; /**< bytes that the call writes into this rank's result: its part of the
                       payload */
    void *result; /**< the memory of the result, `bytes` long, into which the plain copies write
                       before each iteration; NULL: they get memory of their own */
} tsr_bench_subject;

/** A median with its surroundings, in seconds. */
typedef struct tsr_bench_spread {
    double median, min, max;
    double low, high; /**< an interval between two of the times that contains the median of
                           endlessly many with a probability of at least 3/4; 0 and infinity for
                           fewer than 3 times, which do not tell */
} tsr_bench_spread;

/** A measurement's result, equal on all ranks. */
typedef struct tsr_bench_result {
    tsr_bench_spread seconds; /**< of a complete call, on the slowest rank */
    tsr_bench_spread enqueue; /**< until the call returned, on the slowest rank: on a device with
                                   streams, what it costs the host; 0 for `measure` */
    int64_t iterations;       /**< number of times that were kept */
    int64_t calls;            /**< number of calls in an iteration */
    int64_t wrong;            /**< number of wrong elements on all ranks; -1: nothing was checked */
    int64_t bytes;            /**< the payload: the bytes of the subject on all ranks */
    double bandwidth;         /**< payload over median, in bytes a second; 0 without a payload */
    double peak_bandwidth;    /**< that of the best plain copy; 0 if none was measured */
    double of_peak;           /**< bandwidth over peak_bandwidth, or 0 */
    const char *peak_copy;    /**< "memcpy", "non-temporal 32", "non-temporal 64" or "device to
                                   device"; NULL if none was measured. Static */
} tsr_bench_result;

/**
 * Collective: measures one call. `options` may be NULL.
 *
 * TSR_ERROR_ARGUMENT: `subject` has neither or both of `call` and `measure`; an option is out of
 * range, or differs from rank 0's; a stream on the host. TSR_ERROR_MEMORY: there is no memory for
 * the times or for the copies. Errors of callbacks are passed on.
 */
TSR_API tsr_status tsr_bench_call(tsr_comm *comm, const tsr_bench_subject *subject,
                                  const tsr_bench_options *options, tsr_bench_result *out);

/**
 * Collective: measures `count` calls, 1 to TSR_BENCH_MOST_SUBJECTS, in turns: an iteration is one
 * time of each, in their order. Writes results[0..count). The plain copies are of the payload of
 * subjects[0], and all peaks are theirs; checks come after the last iteration, in the same order.
 * Errors as for tsr_bench_call().
 */
TSR_API tsr_status tsr_bench_turns(tsr_comm *comm, const tsr_bench_subject *subjects, int count,
                                   const tsr_bench_options *options, tsr_bench_result *results);

/**
 * Collective: measures tsr_plan_execute() of `plan`, which it prepares, and checks the results.
 *
 * `src` and `dst` are this rank's tensors on options.device, as tsr_plan_execute() takes them:
 * arrays for a batch. With `src` and `dst` NULL, the tensors are the library's own. Sources are
 * filled with values that follow from global indices, and destinations with a pattern, unless
 * options.no_check is 1 and they are the caller's. The last destination is compared with what the
 * indices say, element by element and bit by bit. Terms are small integers, exact in every dtype,
 * so that every term counts; a destination that is Partial is checked by its meaning, what its
 * terms reduce to. Where a source and its destination are one memory, each call moves the result of
 * the last; then one call more, after filling the sources again, is checked.
 *
 * The payload is the bytes of all destination shards. TSR_ERROR_ARGUMENT, beside what
 * tsr_bench_call() and tsr_plan_execute() refuse: a tensor is not on options.device.
 */
TSR_API tsr_status tsr_bench_plan(const tsr_plan *plan, tsr_comm *comm, const tsr_tensor *src,
                                  const tsr_tensor *dst, const tsr_bench_options *options,
                                  tsr_bench_result *out);

/**
 * Collective: measures the plain copies of `bytes` on this rank, which may differ between ranks, in
 * memory of options.device. The result is that of the best copy: its bandwidth is the peak.
 * options.no_copy does not count. Errors as for tsr_bench_call().
 */
TSR_API tsr_status tsr_bench_copy(tsr_comm *comm, size_t bytes, const tsr_bench_options *options,
                                  tsr_bench_result *out);

/** Sorts `count` (at least 1) times of a harness's own, and sums them up. TSR_ERROR_ARGUMENT: a
 * pointer is NULL, or there are no times. Does not communicate. */
TSR_API tsr_status tsr_bench_sum_up(double *seconds, int64_t count, tsr_bench_spread *out);

/** Copies on the calling thread; `dst` and `src` do not overlap. */
typedef void tsr_bench_copier(void *dst, const void *src, size_t bytes);

/** Plain copy `index` of the host, among those that this processor can run, and its name in `*name`
 * (static; `name` may be NULL). NULL past the last. */
TSR_API tsr_bench_copier *tsr_bench_copier_get(int index, const char **name);

/** The number of processor cores that this process may use: no more rank threads copy at once. */
TSR_API int tsr_bench_cores(void);

#ifdef __cplusplus
}
#endif

#endif
