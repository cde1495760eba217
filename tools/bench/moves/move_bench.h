/** Measures one redistribution in turns with plain copies of as many bytes, and checks its
 * result. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_MOVE_BENCH_H
#define TESSERA_TOOLS_BENCH_MOVES_MOVE_BENCH_H

#include "bench/run/bench.h"

/** The call that is measured. */
typedef struct move_way {
    const char *bench; /**< name of the benchmark in its rows */
    /** calls tsr_redistribute_into() if --mode is the engine's default; else executes a plan */
    bool dtensors;
    bool new_results; /**< the call is tsr_redistribute() instead of tsr_redistribute_into(); modes and devices without
                         it are refused */
    bool enqueues;    /**< on GPUs the time of a call is what enqueuing costs the host */
} move_way;

/** What the ranks share. One rank of each process writes the results. */
typedef struct move_bench {
    const move_way *way;
    bench_settings settings;
    move_setup setup;
    tsr_bench_result result;
    tsr_kept_statistics kept; /**< of the context of rank 0, which rank threads share */
    int64_t received;         /**< bytes that the busiest rank receives, by its plan */
} move_bench;

/** The figures that are reported. Rates are bytes a second. */
typedef struct move_figures {
    spread seconds, enqueue, time; /**< of a complete call, of its enqueuing, and the one of the two that is reported as
                                      the time; rates are of complete calls */
    double bandwidth, peak_bandwidth, of_peak;
    double limit_bandwidth, of_limit; /**< rate of a move that reads every term once and writes every result once, as
                                         fast as the best copy moves bytes */
    /** bytes received by all ranks over the least possible; -1 if the least is 0 and exceeded */
    double ratio;
    const char *peak_copy, *reduction;
    int64_t wrong;
    int64_t received; /**< bytes that the busiest rank receives */
    int64_t size;     /**< bytes of the largest shard of any rank, before or after */
    double algbw, busbw;
} move_figures;

/** Reads the options of a move and measures it. Returns the tool's exit status; the caller calls
 * move_bench_finish() in any case. */
int move_bench_run(const tool_arguments *given, const bench_settings *settings, const move_way *way, move_bench *out);
void move_bench_finish(move_bench *b);

/** Computes the figures; call once, after move_bench_run(). Returns the tool's exit status. */
int move_bench_sum_up(move_bench *b, move_figures *out);

#endif
