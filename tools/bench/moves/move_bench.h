/** One redistribution, measured next to plain copies of as many bytes and checked afterwards. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_MOVE_BENCH_H
#define TESSERA_TOOLS_BENCH_MOVES_MOVE_BENCH_H

#include "bench/run/bench.h"
#include "bench/run/peak.h"

/** What is called over and over. */
typedef struct move_way {
    const char *bench; /**< the benchmark's name in its rows */
    bool dtensors;     /**< tsr_redistribute_into() where that takes the mode that is asked for; else a plan's execution */
    bool new_results;  /**< tsr_redistribute() in its place; modes and devices that it does not take are refused */
    bool enqueues;     /**< the time of a call is what it costs the host, on devices whose calls only enqueue */
} move_way;

/** What the ranks share; each writes its own rows only. */
typedef struct move_bench {
    const move_way *way;
    bench_settings settings;
    move_setup setup;
    samples moves, enqueues, copies[MAX_PLAIN_COPIES];
    int64_t calls;            /**< that each of the times is the mean of */
    tsr_kept_statistics kept; /**< of rank 0's context, which rank threads share */
    peak peak;
    struct row {
        int64_t bytes_received;
        int64_t wrong;
    } * rows;
} move_bench;

/** What is reported, from the ranks' rows. */
typedef struct move_figures {
    spread seconds, enqueue, time; /**< done, enqueued, and which of them is the time of a call; rates are of calls that are done */
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
int move_bench_run(const tool_arguments *given, const bench_settings *settings, const move_way *way, move_bench *out);
void move_bench_finish(move_bench *b);

/** Once, after a run. Returns the tool's exit status. */
int move_bench_sum_up(move_bench *b, move_figures *out);

#endif
