/* What the links of this engine cost: times of moves of many sizes, and the latency and bandwidth that fit them best. */
#include "bench.h"
#include "file.h"
#include "fit.h"
#include "local.h"
#include "profile.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#define LOOPS 5
/** About how long a loop takes: all in all three seconds. */
#define LOOP_SECONDS 0.02
/** Before the first: a BLAS that was just loaded lets its idle threads spin for less than that. */
#define WARM_SECONDS 0.3
/** Bytes that a rank receives: from the first to the last, a factor from one to the next. */
#define LEAST_BYTES INT64_C(64)
#define MOST_BYTES  (INT64_C(64) << 20)
#define FACTOR      4
/** Of rank threads where nobody says how many: as many as cores, within these. */
#define LEAST_RANKS 2
#define MOST_RANKS  8

#define ELEMENT_BYTES 4

/** One move of one size. */
typedef struct point {
    move_request request;
    int64_t bytes; /**< that each rank receives, by its plan */
    samples loops; /**< seconds a call */
} point;

typedef struct job {
    place *place;
    int ranks;
    char mesh[16];
    tsr_mode mode;
    tsr_cost_profile profile; /**< in the end: with what was measured */
    const char *output;
    point points[FIT_POINTS];
    fit_point measured[FIT_POINTS];
    fit_error error;
    size_t count;
} job;

static const char *const targets[] = {"S(1)", "R"};

/** The shape of which each rank receives a box of rows x columns from each other one, of about so many bytes in all. */
static tensor_shape choose_shape(const char *to, int ranks, int64_t bytes)
{
    const int64_t box = bytes / ELEMENT_BYTES / (ranks - 1) > 0 ? bytes / ELEMENT_BYTES / (ranks - 1) : 1;
    int64_t rows = 1;
    while (4 * rows * rows <= box)
        rows *= 2;
    const int64_t columns = box / rows;
    return (tensor_shape){2, {rows * ranks, strcmp(to, "R") == 0 ? columns : columns * ranks}};
}

static int add_points(job *j, const char *to)
{
    int status = EXIT_DONE;
    for (int64_t bytes = LEAST_BYTES; bytes <= MOST_BYTES && status == EXIT_DONE; bytes *= FACTOR) {
        point *const p = &j->points[j->count++];
        p->request = (move_request){j->mesh, "S(0)", to, choose_shape(to, j->ranks, bytes), TSR_F32, j->mode};
        status = samples_create(j->ranks, LOOPS, &p->loops);
    }
    return status;
}

/** One rank's side of one point. */
typedef struct side {
    move move;
    local source, destination;
} side;

static tsr_status execute(void *arg)
{
    const side *const s = arg;
    return move_execute(&s->move, &s->source.tensor, &s->destination.tensor);
}

static tsr_status time_point(tsr_comm *comm, side *s, point *p, double warm_seconds)
{
    const place *const where = s->move.place;
    const int rank = tsr_comm_rank(comm);
    bench_loop loop = {execute, s, 1};
    /* The first call touches the memory; what it took says nothing. */
    TSR_TRY(execute(s));
    TSR_TRY(bench_loop_fill(where, comm, &loop, warm_seconds));
    TSR_TRY(bench_loop_fill(where, comm, &loop, LOOP_SECONDS));
    for (int64_t i = 0; i < LOOPS; i++) {
        bench_seconds seconds;
        TSR_TRY(bench_time(where, comm, bench_loop_run, &loop, &seconds));
        p->loops.seconds[rank * LOOPS + i] = seconds.whole / (double)loop.runs;
    }
    if (rank == 0)
        p->bytes = tsr_plan_bytes_received(s->move.plan);
    return samples_share(&p->loops, where, comm);
}

static tsr_status with_tensors(tsr_comm *comm, side *s, point *p, double warm_seconds)
{
    tsr_status status = local_create(s->move.place, comm, s->move.from, &s->source);
    if (status == TSR_OK)
        status = local_create(s->move.place, comm, s->move.to, &s->destination);
    if (status == TSR_OK)
        status = local_clear(&s->source);
    if (status == TSR_OK)
        status = time_point(comm, s, p, warm_seconds);
    local_free(&s->destination);
    local_free(&s->source);
    return status;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < j->count && status == TSR_OK; i++) {
        side s = {.source = {.place = NULL}};
        status = move_create(j->place, comm, &j->points[i].request, &s.move);
        if (status != TSR_OK)
            break;
        status = with_tensors(comm, &s, &j->points[i], i == 0 ? WARM_SECONDS : LOOP_SECONDS);
        move_finish(&s.move);
    }
    return status;
}

/** A link between nodes that was not measured stays no quicker than what was measured inside. */
static int fit_profile(job *j)
{
    tsr_cost_profile *const p = &j->profile;
    for (size_t i = 0; i < j->count; i++)
        j->measured[i] = (fit_point){(double)j->points[i].bytes, samples_spread(&j->points[i].loops).median};
    if (!fit_link(j->measured, j->count, &p->inside))
        return complain(EXIT_REFUSED, "the times do not grow with the bytes, so that they tell of no bandwidth; is this machine busy?");
    if (p->between.latency < p->inside.latency)
        p->between.latency = p->inside.latency;
    j->error = fit_measure(j->measured, j->count, &p->inside);
    return EXIT_DONE;
}

static json_t *points_to_json(const job *j)
{
    json_t *const array = json_array();
    for (size_t i = 0; i < j->count; i++) {
        const fit_point *const m = &j->measured[i];
        json_t *const row = json_pack("{ss sI sf sf}", "to", j->points[i].request.to, "bytes", (json_int_t)j->points[i].bytes, "seconds",
                                      m->seconds, "model", fit_seconds(&j->profile.inside, m->bytes));
        if (json_array_append_new(array, row) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *link_to_json(const tsr_link *link)
{
    return json_pack("{sf sf}", "latency", link->latency, "bandwidth", link->bandwidth);
}

static int report_json(const job *j)
{
    return print_json(json_pack("{ss ss ss si so so so s{sf sf}}", "bench", "calibrate", "engine", place_engine(j->place), "mode",
                                mode_name(j->mode), "ranks", j->ranks, "inside", link_to_json(&j->profile.inside), "between",
                                link_to_json(&j->profile.between), "points", points_to_json(j), "error", "median", j->error.median, "max",
                                j->error.max));
}

static int report_text(const job *j)
{
    const tsr_link *const inside = &j->profile.inside;
    char text[PROFILE_TEXT_BYTES];
    tsr_cost_print(&j->profile, text, sizeof text);
    printf("# %d rank threads, %s: %.2f us and %.2f GB/s into one rank\n", j->ranks, mode_name(j->mode), 1e6 * inside->latency,
           1e-9 * inside->bandwidth);
    printf("# relative error of the model: %.2f in the median, %.2f at worst\n", j->error.median, j->error.max);
    printf("#%13s %8s %11s %11s\n#%13s %8s %11s %11s\n", "received", "to", "time", "model", "(B)", "", "(us)", "(us)");
    for (size_t i = 0; i < j->count; i++)
        printf(" %13lld %8s %11.2f %11.2f\n", (long long)j->points[i].bytes, j->points[i].request.to, 1e6 * j->measured[i].seconds,
               1e6 * fit_seconds(inside, j->measured[i].bytes));
    printf("%s\n", text);
    return EXIT_DONE;
}

static int write_profile(const job *j)
{
    char comment[160];
    snprintf(comment, sizeof comment,
             "inside: tessera bench calibrate, %d rank threads, %s; relative error %.2f in the median, %.2f at worst", j->ranks,
             mode_name(j->mode), j->error.median, j->error.max);
    return profile_write(j->output, comment, &j->profile);
}

static int read_ranks(const place *p, const char *text, int *out)
{
    const int cores = core_count(), launched = place_launched(p);
    const int usual = launched > 0 ? launched : cores < LEAST_RANKS ? LEAST_RANKS : cores > MOST_RANKS ? MOST_RANKS : cores;
    int64_t ranks;
    const int status = parse_count("--ranks", text, usual, &ranks);
    if (status != EXIT_DONE)
        return status;
    if (launched > 0 && ranks != launched)
        return complain(EXIT_REFUSED, "--ranks is %lld, but %d were launched", (long long)ranks, launched);
    if (ranks < LEAST_RANKS || ranks > MAX_RANK_THREADS)
        return complain(EXIT_REFUSED, "--ranks is %lld; from %d to %d rank threads can be measured", (long long)ranks, LEAST_RANKS,
                        MAX_RANK_THREADS);
    *out = (int)ranks;
    return EXIT_DONE;
}

static int read_job(const tool_arguments *given, job *j)
{
    j->output = given->value[OPT_OUTPUT];
    int status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = parse_mode(given->value[OPT_MODE], &j->mode);
    if (status == EXIT_DONE)
        status = read_ranks(j->place, given->value[OPT_RANKS], &j->ranks);
    if (status == EXIT_DONE)
        status = profile_read(given->value[OPT_PROFILE], &j->profile);
    if (status == EXIT_DONE && j->output != NULL)
        status = file_check_output("--output", j->output);
    snprintf(j->mesh, sizeof j->mesh, "%d", j->ranks);
    for (size_t i = 0; i < sizeof targets / sizeof *targets && status == EXIT_DONE; i++)
        status = add_points(j, targets[i]);
    return status;
}

static int run_job(const tool_arguments *given, job *j)
{
    int status = read_job(given, j);
    if (status == EXIT_DONE && place_run(j->place, j->ranks, run_rank, j) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status != EXIT_DONE || !place_speaks(j->place))
        return status;
    status = fit_profile(j);
    if (status == EXIT_DONE && j->output != NULL)
        status = write_profile(j);
    return status != EXIT_DONE ? status : given->value[OPT_JSON] != NULL ? report_json(j) : report_text(j);
}

static int run_calibrate(const tool_arguments *given)
{
    job j = {.count = 0};
    const int status = run_job(given, &j);
    for (size_t i = 0; i < j.count; i++)
        free(j.points[i].loops.seconds);
    place_close(j.place);
    return status;
}

const tool_command bench_calibrate_command = {
    .name = "bench calibrate",
    .summary = "what links cost: the latency and bandwidth by which plans are timed",
    .details =
        "Moves S(0) to S(1) and S(0) to R of 64 bytes to 64 MiB that each rank receives are repeated for about three seconds in all; each "
        "time is the median of several loops, of the slowest rank. The latency and bandwidth whose latency + bytes / bandwidth is nearest "
        "to "
        "the times, by the sum of squared relative errors, are what the engine's links cost inside a node. Links between nodes are those "
        "of "
        "--profile, else the default, but begin no earlier than those inside.\n\n"
        "--output is the profile's file, replaced at once or left as it was. Plans read a profile from the variable TSR_COST: "
        "TSR_COST=\"$(cat FILE)\". --ranks is 2 to 8 by the cores where it is not given.",
    .examples = "  tessera bench calibrate --output links.cost\n"
                "  tessera bench calibrate --mode message --ranks 4 --profile cluster.cost --output cluster.cost --json\n",
    .takes = TAKES(RANKS) | TAKES(MODE) | TAKES(ENGINE) | TAKES(PROFILE) | TAKES(OUTPUT) | TAKES(JSON),
    .run = run_calibrate,
};
