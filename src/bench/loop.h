/** Times a call between two barriers, as often in a row as it must be to be timed. */
#ifndef TSR_BENCH_LOOP_H
#define TSR_BENCH_LOOP_H

#include "bench/rank.h"

/** A number of runs of a subject, for calls that are too short to be timed alone. */
typedef struct tsr_bench_loop {
    const tsr_bench_subject *subject;
    int64_t runs;
} tsr_bench_loop;

/** The times of one call on one rank. */
typedef struct tsr_bench_seconds {
    /** from the end of the barrier before to that of the barrier after, the stream idle at both */
    double whole;
    double enqueue; /**< from the end of the barrier before until the call returned: on devices with streams, what
                       enqueuing costs the host */
} tsr_bench_seconds;

/** Seconds of the monotonic clock. */
double tsr_bench_clock(void);

/** Warms up, and sets the number of runs of the loop, on which all ranks agree; collective. */
tsr_status tsr_bench_loop_settle(const tsr_bench_rank *r, tsr_bench_loop *loop);

/** The time of one run: the mean of the loop; collective. If the loop has several runs, one untimed
 * run comes first, so that caches hold the data of the loop. Where a rank fails, all do. */
tsr_status tsr_bench_loop_time(const tsr_bench_rank *r, const tsr_bench_loop *loop, tsr_bench_seconds *out);

#endif
