/** What the benchmarks share: settings, times of every rank and iteration, and their summary. */
#ifndef TESSERA_TOOLS_BENCH_RUN_BENCH_H
#define TESSERA_TOOLS_BENCH_RUN_BENCH_H

#include "bench/run/progress.h"
#include "place/move.h"

#include <jansson.h>

/** A median and extremes, in seconds. */
typedef struct spread {
    double median, min, max;
} spread;

/** A table of times in seconds: the i-th of rank r is at [r * iterations + i]. Each rank writes
 * only its own row. */
typedef struct samples {
    int ranks;
    int64_t iterations;
    double *seconds;
} samples;

/** Upper bound of the iterations of a benchmark, whose times are all kept. */
#define MAX_ITERATIONS INT64_C(1000000)

/** Allocates a table of zeros; the caller frees out->seconds. Returns the tool's exit status. */
int samples_create(int ranks, int64_t iterations, samples *out);

/** Gives every process all rows; collective, after each rank has filled its own. */
tsr_status samples_share(const samples *s, const place *p, tsr_comm *comm);

/** The spread over iterations of the slowest rank's time. Sorts the samples in place; may be called
 * again. */
spread samples_spread(const samples *s);

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

/** The number of processor cores that this process may use. */
int core_count(void);

/** Runs `body` on every rank, unless a process has failed: `status` is this process's exit status
 * so far. Clears the line of progress before any complaint. Returns the tool's exit status. */
int bench_on_ranks(const bench_settings *settings, int status, place *p, int ranks, place_body *body, void *arg);

/** A call to measure. */
typedef tsr_status bench_body(void *arg);

/** The times of one call on one rank. */
typedef struct bench_seconds {
    /** from the end of the barrier before to that of the barrier after, the stream idle at both */
    double whole;
    double enqueue; /**< from the end of the barrier before until the body returned: on GPUs, what enqueuing costs the
                       host */
} bench_seconds;

/** Runs `body` between two barriers, waiting for the rank's stream before each; collective. */
tsr_status bench_time(const place *p, tsr_comm *comm, bench_body *body, void *arg, bench_seconds *out);

/** A number of runs of a body, for calls that are too short to be timed alone. */
typedef struct bench_loop {
    bench_body *body;
    void *arg;
    int64_t runs;
} bench_loop;

/** Warms up, and sets the number of runs of the loop, on which all ranks agree; collective. */
tsr_status bench_loop_settle(const place *p, tsr_comm *comm, const bench_settings *settings, bench_loop *loop);

/** The time of one run: the mean of the loop; collective. If the loop has several runs, one untimed
 * run comes first, so that caches hold the data of the loop. */
tsr_status bench_loop_time(const place *p, tsr_comm *comm, const bench_loop *loop, bench_seconds *out);

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
