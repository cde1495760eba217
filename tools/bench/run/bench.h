/** What the benchmarks share: times of every rank and iteration, and how they are summed up. */
#ifndef TESSERA_TOOLS_BENCH_RUN_BENCH_H
#define TESSERA_TOOLS_BENCH_RUN_BENCH_H

#include "bench/run/progress.h"
#include "place/move.h"

#include <jansson.h>

/** In seconds. */
typedef struct spread {
    double median, min, max;
} spread;

/** A table of times: rank r's i-th is at [r * iterations + i]; ranks write their own rows only. */
typedef struct samples {
    int ranks;
    int64_t iterations;
    double *seconds;
} samples;

/** Most iterations of a benchmark: their times are kept. */
#define MAX_ITERATIONS INT64_C(1000000)

/** Returns the tool's exit status; the caller frees out->seconds. */
int samples_create(int ranks, int64_t iterations, samples *out);

/** Collective, once a rank has filled its row: every rank of every process has all rows. */
tsr_status samples_share(const samples *s, const place *p, tsr_comm *comm);

/** The slowest rank of each iteration, over iterations. */
spread samples_spread(const samples *s);

/** Half of what the times spread over, relative to their median. */
double spread_noise(spread s);

/** {"median": .., "min": .., "max": ..} */
json_t *spread_to_json(spread s);

/** How a benchmark measures. */
typedef struct bench_settings {
    int64_t iterations;  /**< how many times are kept */
    int64_t warm_ups;    /**< what is run before in the same way */
    int64_t calls;       /**< what one time is the mean of; 0: of as many as take loop_seconds */
    double loop_seconds; /**< about */
    double warm_seconds; /**< calls for about so long come before everything else, where --warm-up does not say otherwise */
    bool checks;         /**< whether results are compared with what they must be */
    progress *progress;
} bench_settings;

/** --iterations, --warm-up, --calls and --check, over what `out` holds where they are not given. Returns the tool's exit status. */
int bench_settings_read(const tool_arguments *given, bench_settings *out);

/** What is counted for the line that says how far a run is: every iteration, filling, and checking. */
int64_t bench_settings_steps(const bench_settings *s);

/** One step is done: one rank speaks for all. */
void bench_step(const bench_settings *s, const place *p, int rank);

/** Processor cores that this process may use. */
int core_count(void);

/** Runs `body` on every rank, if all processes came so far: `status` is this one's. Whatever is complained of, the line of progress is
 * taken away before. Returns the tool's exit status. */
int bench_on_ranks(const bench_settings *settings, int status, place *p, int ranks, place_body *body, void *arg);

/** One thing to measure. */
typedef tsr_status bench_body(void *arg);

/** What one run took on one rank. */
typedef struct bench_seconds {
    double whole;   /**< from when the barrier before let the rank go until the barrier after did, with its stream idle */
    double enqueue; /**< until the body returned: what it costs the host, on devices whose calls only enqueue */
} bench_seconds;

/** Collective: runs `body` between two barriers, before which the rank's stream is idle. */
tsr_status bench_time(const place *p, tsr_comm *comm, bench_body *body, void *arg, bench_seconds *out);

/** Many runs of a body, for what is too short to be timed once. */
typedef struct bench_loop {
    bench_body *body;
    void *arg;
    int64_t runs;
} bench_loop;

/** Collective: warms up, and agrees on how many runs the loop has. */
tsr_status bench_loop_settle(const place *p, tsr_comm *comm, const bench_settings *settings, bench_loop *loop);

/** Collective: what one of the loop's runs takes. A run that is not timed comes before several, so that caches hold what the runs leave
 * there, not what was before them. */
tsr_status bench_loop_time(const place *p, tsr_comm *comm, const bench_loop *loop, bench_seconds *out);

/** What the benchmarks of moves print alike: the options' text as the library prints it. */
typedef struct move_names {
    char *mesh, *from, *to;
} move_names;

/** The options that describe a move, understood; the layouts are over an abstract mesh. */
typedef struct move_setup {
    place *place;
    move_request request;
    tsr_mesh *mesh;
    tsr_layout *from, *to;
    int ranks; /**< that run: the mesh's, and those below its largest */
    move_names names;
} move_setup;

/** Returns the tool's exit status. The caller calls move_setup_finish() in any case. */
int move_setup_read(const tool_arguments *given, move_setup *out);
void move_setup_finish(move_setup *s);

#endif
