/**
 * One run of a benchmark: measures and prints every combination of its options' values, one after
 * the other.
 *
 * It handles what benchmarks share: sizes (-b, -e, -f) and sweeps, how often to measure (-n, -w,
 * --calls, -c), the formats of rows, where a table begins, and the line of progress.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_RUN_H
#define TESSERA_TOOLS_BENCH_RUN_RUN_H

#include "bench/run/bench.h"
#include "bench/run/csv.h"
#include "bench/run/size_range.h"
#include "bench/run/sweep.h"

typedef struct bench_run bench_run;

/** The meaning of --begin, --end and --factor: not taken, sizes that replace --shape, or sizes that
 * `measure` handles. */
typedef enum bench_sizes { SIZES_NONE = 0, SIZES_FOR_SHAPES, SIZES_OF_ITS_OWN } bench_sizes;

/** A kind of benchmark. */
typedef struct bench_kind {
    const char *name; /**< "bench redistribute" */
    /** options that may have several values, slowest first; OPT_FROM stands for --from and --to */
    const tool_option *axes;
    int axis_count;
    int within; /**< number of axes, the last ones, that may differ between the rows of a table */
    bench_sizes sizes;
    bench_settings settings; /**< defaults; warm_seconds apply to the first row only */

    /** Measures and prints one combination, `now`; `begins_table`: print the names of the columns
     * before it. */
    int (*measure)(bench_run *run, const tool_arguments *now, bool begins_table);
    /** Sets `*out` to the steps of one combination for the line of progress; NULL:
     * bench_settings_steps(). */
    int (*steps)(const bench_run *run, const tool_arguments *now, int64_t *out);
} bench_kind;

struct bench_run {
    const bench_kind *kind;
    row_format format;
    size_range sizes; /**< of --begin, --end and --factor; begin is 0 if not given */
    bench_settings settings;
    sweep sweep;
    int64_t steps; /**< steps of the whole run, for the line of progress */
    int64_t rows;  /**< rows printed so far; a caller sets it above 0 before the run if CSV needs no line of names */
    bool single;   /**< there is only one row to measure */
};

extern const bench_kind bench_redistribute_kind, bench_dispatch_kind, bench_linear_kind, bench_plan_kind,
    bench_kernels_kind;

/** Reads the options and checks the values of all combinations. Returns the tool's exit status; the
 * caller calls bench_run_finish() in any case. `given` is borrowed. */
int bench_run_begin(const bench_kind *kind, const tool_arguments *given, bench_run *out);
void bench_run_finish(bench_run *run);

/** Measures all combinations, up to the first failure, and steps `line`, which the caller has
 * begun. Returns the tool's exit status. */
int bench_run_go(bench_run *run, progress *line);

/** bench_run_begin(), bench_run_go() with a line of progress of its own, and bench_run_finish().
 * Returns the tool's exit status. */
int bench_run_alone(const bench_kind *kind, const tool_arguments *given);

/** print_row() in the run's format, with the names before the first row of CSV. */
int bench_run_print(bench_run *run, json_t *row);

#endif
