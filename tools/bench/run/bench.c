#include "bench/run/bench.h"

#include "cli/order.h"
#include "cli/report.h"

#include <tessera/sys/status.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Upper bound of the runs of a loop. */
#define MOST_RUNS 1000000

int samples_create(int ranks, int64_t iterations, samples *out)
{
    double *const seconds = calloc((size_t)ranks * (size_t)iterations, sizeof *seconds);
    if (!seconds)
        return complain(EXIT_REFUSED, "there is no memory for the times of %lld iterations on %d ranks",
                        (long long)iterations, ranks);
    *out = (samples){ranks, iterations, seconds};
    return EXIT_DONE;
}

tsr_status samples_share(const samples *s, const place *p, tsr_comm *comm)
{
    return place_share(p, comm, s->seconds, (size_t)s->iterations * sizeof *s->seconds);
}

/* Leaves the slowest time of each iteration in rank 0's row, sorted, and 0 in the others, so that
 * a second call gives the same. */
spread samples_spread(const samples *s)
{
    double *const slowest = s->seconds;
    const int64_t n = s->iterations;
    for (int r = 1; r < s->ranks; r++)
        for (int64_t i = 0; i < n; i++) {
            double *const seconds = &s->seconds[r * n + i];
            slowest[i] = *seconds > slowest[i] ? *seconds : slowest[i];
            *seconds = 0;
        }
    const double median = sort_to_median(slowest, (size_t)n);
    return (spread){median, slowest[0], slowest[n - 1]};
}

double spread_noise(spread s)
{
    return s.median > 0 ? (s.max - s.min) / 2 / s.median : 0;
}

json_t *spread_to_json(spread s)
{
    return json_pack("{sf sf sf}", "median", s.median, "min", s.min, "max", s.max);
}

static int parse_iterations(const char *option, const char *text, int64_t *out)
{
    const int status = parse_count(option, text, *out, out);
    if (status == EXIT_DONE && *out > MAX_ITERATIONS)
        return complain(EXIT_REFUSED, "%s is %s; %lld are the most", option, text, (long long)MAX_ITERATIONS);
    return status;
}

static int parse_warm_up(const char *text, bench_settings *out)
{
    if (!text)
        return EXIT_DONE;
    out->warm_seconds = 0;
    const int status = parse_index("--warm-up", text, &out->warm_ups);
    if (status == EXIT_DONE && out->warm_ups > MAX_ITERATIONS)
        return complain(EXIT_REFUSED, "--warm-up is %s; %lld are the most", text, (long long)MAX_ITERATIONS);
    return status;
}

static int parse_check(const char *text, bool *out)
{
    *out = !text || strcmp(text, "0") != 0;
    if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return complain(EXIT_USAGE, "--check '%s' is neither 0 nor 1", text);
    return EXIT_DONE;
}

int bench_settings_read(const tool_arguments *given, bench_settings *out)
{
    int status = parse_iterations("--iterations", given->value[OPT_ITERATIONS], &out->iterations);
    if (status == EXIT_DONE)
        status = parse_warm_up(given->value[OPT_WARM_UP], out);
    if (status == EXIT_DONE)
        status = parse_iterations("--calls", given->value[OPT_CALLS], &out->calls);
    return status == EXIT_DONE ? parse_check(given->value[OPT_CHECK], &out->checks) : status;
}

int64_t bench_settings_steps(const bench_settings *s)
{
    return 1 + s->warm_ups + s->iterations + s->checks;
}

void bench_step(const bench_settings *s, const place *p, int rank)
{
    if (rank == 0 && place_speaks(p))
        progress_step(s->progress);
}

int core_count(void)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        return CPU_COUNT(&cores);
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

int bench_on_ranks(const bench_settings *settings, int status, place *p, int ranks, place_body *body, void *arg)
{
    status = place_agree(p, status);
    if (status != EXIT_DONE)
        return status;
    const tsr_status done = place_run(p, ranks, body, arg);
    progress_clear(settings->progress);
    return done == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

tsr_status bench_time(const place *p, tsr_comm *comm, bench_body *body, void *arg, bench_seconds *out)
{
    const int rank = tsr_comm_rank(comm);
    TSR_TRY(place_settle(p, rank));
    TSR_TRY(tsr_comm_barrier(comm));
    const double start = clock_seconds();
    TSR_TRY(body(arg));
    const double enqueued = clock_seconds();
    TSR_TRY(place_settle(p, rank));
    TSR_TRY(tsr_comm_barrier(comm));
    *out = (bench_seconds){clock_seconds() - start, enqueued - start};
    return TSR_OK;
}

static tsr_status run_loop(void *arg)
{
    const bench_loop *const l = arg;
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < l->runs && status == TSR_OK; i++)
        status = l->body(l->arg);
    return status;
}

/* Times the loop, and sets its runs to about `seconds`, by the time of rank 0. */
static tsr_status fill_loop(const place *p, tsr_comm *comm, bench_loop *loop, double seconds)
{
    bench_seconds taken;
    TSR_TRY(bench_time(p, comm, run_loop, loop, &taken));
    const double runs = seconds / (taken.whole / (double)loop->runs);
    loop->runs = !(runs > 1) ? 1 : runs > MOST_RUNS ? MOST_RUNS : (int64_t)runs;
    return tsr_comm_broadcast(comm, &loop->runs, 1, TSR_I64, 0, tsr_device_host(), NULL);
}

/* Fills the loop twice, since the first call takes longer: it touches memory, or plans. */
tsr_status bench_loop_settle(const place *p, tsr_comm *comm, const bench_settings *settings, bench_loop *loop)
{
    loop->runs = 1;
    TSR_TRY(fill_loop(p, comm, loop, settings->loop_seconds));
    if (settings->warm_seconds > 0) {
        TSR_TRY(fill_loop(p, comm, loop, settings->warm_seconds));
        TSR_TRY(fill_loop(p, comm, loop, settings->loop_seconds));
    } else if (settings->calls == 0)
        TSR_TRY(fill_loop(p, comm, loop, settings->loop_seconds));
    loop->runs = settings->calls > 0 ? settings->calls : loop->runs;
    return TSR_OK;
}

tsr_status bench_loop_time(const place *p, tsr_comm *comm, const bench_loop *loop, bench_seconds *out)
{
    if (loop->runs > 1)
        TSR_TRY(loop->body(loop->arg));
    TSR_TRY(bench_time(p, comm, run_loop, (void *)loop, out));
    out->whole /= (double)loop->runs;
    out->enqueue /= (double)loop->runs;
    return TSR_OK;
}

static int read_names(move_setup *s)
{
    s->names = (move_names){mesh_text(s->mesh), layout_text(s->from), layout_text(s->to)};
    if (!s->names.mesh || !s->names.from || !s->names.to)
        return complain(EXIT_REFUSED, "there is no memory for the names of the layouts");
    return EXIT_DONE;
}

int move_setup_read(const tool_arguments *given, move_setup *out)
{
    *out = (move_setup){
        .request = {.mesh = given->value[OPT_MESH], .from = given->value[OPT_FROM], .to = given->value[OPT_TO]}};
    move_request *const request = &out->request;
    int status = place_open(given, &out->place);
    if (status == EXIT_DONE)
        status = place_parse_mode(out->place, given->value[OPT_MODE], &request->mode);
    if (status == EXIT_DONE)
        status = parse_shape(given->value[OPT_SHAPE], &request->shape);
    if (status == EXIT_DONE)
        status = parse_dtype(given->value[OPT_DTYPE], &request->dtype);
    if (status == EXIT_DONE)
        status = parse_mesh(request->mesh, &out->mesh);
    if (status == EXIT_DONE)
        status = place_count_ranks(out->place, out->mesh, NULL, &out->ranks);
    if (status == EXIT_DONE)
        status = parse_layout("--from", request->from, out->mesh, &request->shape, request->dtype, &out->from);
    if (status == EXIT_DONE)
        status = parse_layout("--to", request->to, out->mesh, &request->shape, request->dtype, &out->to);
    return status == EXIT_DONE ? read_names(out) : status;
}

void move_setup_finish(move_setup *s)
{
    free(s->names.mesh);
    free(s->names.from);
    free(s->names.to);
    tsr_layout_destroy(s->from);
    tsr_layout_destroy(s->to);
    tsr_mesh_destroy(s->mesh);
    place_close(s->place);
}
