/** One redistribution, measured next to plain copies of as many bytes and checked afterwards. */
#ifndef TESSERA_TOOLS_MOVE_BENCH_H
#define TESSERA_TOOLS_MOVE_BENCH_H

#include "bench.h"
#include "bench_peak.h"
#include "progress.h"

/** How it is measured. */
typedef struct bench_settings {
    int64_t iterations, warm_ups;
    bool checks; /**< whether results are compared with what they must be */
    progress *progress;
} bench_settings;

/** What the ranks share; each writes its own rows only. */
typedef struct move_bench {
    bench_settings settings;
    move_setup setup;
    samples moves, enqueues, copies[MAX_PLAIN_COPIES];
    int64_t calls; /**< from one barrier to the next, for each of the times */
    peak peak;
    struct row {
        int64_t bytes_received;
        int64_t wrong;
    } * rows;
} move_bench;

/** What is reported, from the ranks' rows. */
typedef struct move_figures {
    spread seconds, enqueue;
    double bandwidth, peak_bandwidth, of_peak;
    double limit_bandwidth, of_limit; /**< of a move that reads every term once and writes every result once at the peak's rate */
    double ratio;                     /**< bytes received over the least possible; -1 if there is none */
    const char *peak_copy, *reduction;
    int64_t wrong;
    int64_t received; /**< most bytes that a rank receives */
    int64_t size;     /**< largest shard of any rank, before or after */
    double algbw, busbw;
} move_figures;

/** Reads what a move is and runs it. Returns the tool's exit status; the caller finishes the bench in any case. */
int move_bench_run(const tool_arguments *given, const bench_settings *settings, move_bench *out);
void move_bench_finish(move_bench *b);

/** Once, after a run. Returns the tool's exit status. */
int move_bench_sum_up(move_bench *b, move_figures *out);

#endif
