/** What the benchmarks share: times of every rank and iteration, and how they are summed up. */
#ifndef TESSERA_TOOLS_BENCH_H
#define TESSERA_TOOLS_BENCH_H

#include "move.h"

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

/** --iterations; refused beyond MAX_ITERATIONS. */
int parse_iterations(const char *text, int64_t otherwise, int64_t *out);

/** --check: 1 where it is not given. */
int parse_check(const char *text, bool *out);

/** Processor cores that this process may use. */
int core_count(void);

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

/** The whole loop as a body, up to the first failure; `arg` is the bench_loop. */
tsr_status bench_loop_run(void *arg);

/** Collective: runs the loop as it is, and agrees on how many runs take about so many seconds. */
tsr_status bench_loop_fill(const place *p, tsr_comm *comm, bench_loop *loop, double seconds);

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
