/** What the benchmarks share: settings, and how libtessera-bench measures by them. */
#ifndef TESSERA_TOOLS_BENCH_RUN_BENCH_H
#define TESSERA_TOOLS_BENCH_RUN_BENCH_H

#include "bench/run/progress.h"
#include "place/move.h"

#include <tessera/bench.h>

#include <jansson.h>

/** A median and its surroundings, in seconds. */
typedef tsr_bench_spread spread;

/** Half of (max - min), relative to the median. */
double spread_noise(spread s);

/** The spread as {"median": .., "min": .., "max": ..}. */
json_t *spread_to_json(spread s);

/** How a benchmark measures. */
typedef struct bench_settings {
    int64_t iterations;  /**< number of times that are kept */
    int64_t warm_ups;    /**< number of loops that are run before, and not kept */
    int64_t calls;       /**< number of calls in a loop, of which a time is the mean; 0: as many as take loop_seconds */
    double loop_seconds; /**< approximate seconds of a loop */
    double warm_seconds; /**< approximate seconds of calls before everything else; 0 with --warm-up */
    bool checks;         /**< check the results */
    progress *progress;  /**< the line of progress; NULL: none */
} bench_settings;

/** Reads --iterations, --warm-up, --calls and --check; `out` keeps the value of an option that is
 * not given. Returns the tool's exit status. */
int bench_settings_read(const tool_arguments *given, bench_settings *out);

/** The steps of one measurement, for the line of progress: filling, every warm-up and iteration,
 * and checking. */
int64_t bench_settings_steps(const bench_settings *s);

/** Counts a step that all ranks have done; only rank 0 does. */
void bench_step(const bench_settings *s, const place *p, int rank);

/** How a rank of the place measures by these settings: without plain copies, and with a step of the
 * line of progress for each iteration. */
tsr_bench_options bench_options(const bench_settings *s, const place *p, int rank);

/** True on the rank that keeps results for its process, as all ranks get the same: rank 0 where
 * ranks are threads, every rank that is a process. */
bool bench_keeps(const place *p, int rank);

/** Runs `body` on every rank, unless a process has failed: `status` is this process's exit status
 * so far. Clears the line of progress before any complaint. Returns the tool's exit status. */
int bench_on_ranks(const bench_settings *settings, int status, place *p, int ranks, place_body *body, void *arg);

/** Mesh and placements of a move as the library prints them; on the heap. */
typedef struct move_names {
    char *mesh, *from, *to;
} move_names;

/** The options that describe a move, parsed. The mesh and the layouts are abstract. */
typedef struct move_setup {
    place *place;
    move_request request;
    tsr_mesh *mesh;
    tsr_layout *from, *to;
    int ranks; /**< number of ranks to run: the mesh's largest rank plus one */
    move_names names;
} move_setup;

/** Reads the options of a move. Returns the tool's exit status; the caller calls
 * move_setup_finish() in any case. */
int move_setup_read(const tool_arguments *given, move_setup *out);
void move_setup_finish(move_setup *s);

#endif
