/**
 * One run of a benchmark: everything that its options hold, one after the other, each measured and printed in its turn.
 *
 * What benchmarks have in common is here: sizes (-b, -e, -f) and sweeps, how often to measure (-n, -w, --calls, -c), the formats of their
 * rows, when a table begins, and the line on a terminal that says how far the run is.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_RUN_H
#define TESSERA_TOOLS_BENCH_RUN_RUN_H

#include "bench/run/bench.h"
#include "bench/run/csv.h"
#include "bench/run/size_range.h"
#include "bench/run/sweep.h"

typedef struct bench_run bench_run;

/** What --begin, --end and --factor are to a benchmark: unknown, sizes that take the place of --shape, or its own affair. */
typedef enum bench_sizes { SIZES_NONE = 0, SIZES_FOR_SHAPES, SIZES_OF_ITS_OWN } bench_sizes;

/** What tells benchmarks apart. */
typedef struct bench_kind {
    const char *name;        /**< "bench redistribute" */
    const tool_option *axes; /**< what may hold several values, the slowest first; OPT_FROM stands for the pair */
    int axis_count;
    int within; /**< so many of the last axes may differ from row to row of a table */
    bench_sizes sizes;
    bench_settings settings; /**< where nobody says otherwise; warm_seconds are for the first row */

    /** Measures one combination and prints it; `begins_table` says that the names of the columns are wanted. */
    int (*measure)(bench_run *run, const tool_arguments *now, bool begins_table);
    /** The steps of one combination, where they are not those of its settings; or NULL. */
    int (*steps)(const bench_run *run, const tool_arguments *now, int64_t *out);
} bench_kind;

struct bench_run {
    const bench_kind *kind;
    row_format format;
    size_range sizes; /**< begin is 0 where there are none */
    bench_settings settings;
    sweep sweep;
    int64_t steps; /**< of the whole run */
    int64_t rows;  /**< printed so far; what is there before the run begins makes the names of CSV unnecessary */
    bool single;   /**< there is one combination */
};

extern const bench_kind bench_redistribute_kind, bench_dispatch_kind, bench_linear_kind, bench_plan_kind;

/** Reads the options, and refuses what reads wrong, whenever its turn would be. Returns the tool's exit status; the caller calls
 * bench_run_finish() in any case. `given` is borrowed. */
int bench_run_begin(const bench_kind *kind, const tool_arguments *given, bench_run *out);
void bench_run_finish(bench_run *run);

/** Measures all, up to the first failure; `line` has begun. */
int bench_run_go(bench_run *run, progress *line);

/** From begin to finish, with a line of its own. */
int bench_run_alone(const bench_kind *kind, const tool_arguments *given);

/** Prints a row as JSON or CSV and gives it back; NULL is complained about. */
int bench_run_print(bench_run *run, json_t *row);

#endif
