#include "bench.h"

#include "report.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>
#include <unistd.h>

/** Of a loop. */
#define MOST_RUNS 1000000

int samples_create(int ranks, int64_t iterations, samples *out)
{
    double *const seconds = calloc((size_t)ranks * (size_t)iterations, sizeof *seconds);
    if (seconds == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the times of %lld iterations on %d ranks", (long long)iterations, ranks);
    *out = (samples){ranks, iterations, seconds};
    return EXIT_DONE;
}

tsr_status samples_share(const samples *s, const place *p, tsr_comm *comm)
{
    return place_share(p, comm, s->seconds, (size_t)s->iterations * sizeof *s->seconds);
}

static int compare_times(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** Leaves each iteration's slowest time in the first rank's row, in ascending order. */
spread samples_spread(const samples *s)
{
    double *const slowest = s->seconds;
    const int64_t n = s->iterations;
    for (int r = 1; r < s->ranks; r++)
        for (int64_t i = 0; i < n; i++)
            slowest[i] = s->seconds[r * n + i] > slowest[i] ? s->seconds[r * n + i] : slowest[i];
    qsort(slowest, (size_t)n, sizeof *slowest, compare_times);
    return (spread){(slowest[(n - 1) / 2] + slowest[n / 2]) / 2, slowest[0], slowest[n - 1]};
}

double spread_noise(spread s)
{
    return s.median > 0 ? (s.max - s.min) / 2 / s.median : 0;
}

json_t *spread_to_json(spread s)
{
    return json_pack("{sf sf sf}", "median", s.median, "min", s.min, "max", s.max);
}

int parse_iterations(const char *text, int64_t otherwise, int64_t *out)
{
    const int status = parse_count("--iterations", text, otherwise, out);
    if (status == EXIT_DONE && *out > MAX_ITERATIONS)
        return complain(EXIT_REFUSED, "--iterations is %s; %lld are the most", text, (long long)MAX_ITERATIONS);
    return status;
}

int parse_check(const char *text, bool *out)
{
    *out = text == NULL || strcmp(text, "0") != 0;
    if (text != NULL && strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return complain(EXIT_USAGE, "--check '%s' is neither 0 nor 1", text);
    return EXIT_DONE;
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

tsr_status bench_loop_run(void *arg)
{
    const bench_loop *const l = arg;
    tsr_status status = TSR_OK;
    for (int64_t i = 0; i < l->runs && status == TSR_OK; i++)
        status = l->body(l->arg);
    return status;
}

tsr_status bench_loop_fill(const place *p, tsr_comm *comm, bench_loop *loop, double seconds)
{
    bench_seconds taken;
    TSR_TRY(bench_time(p, comm, bench_loop_run, loop, &taken));
    const double runs = seconds / (taken.whole / (double)loop->runs);
    loop->runs = !(runs > 1) ? 1 : runs > MOST_RUNS ? MOST_RUNS : (int64_t)runs;
    return tsr_comm_broadcast(comm, &loop->runs, 1, TSR_I64, 0, tsr_device_host(), NULL);
}

static int read_names(move_setup *s)
{
    s->names = (move_names){mesh_text(s->mesh), layout_text(s->from), layout_text(s->to)};
    if (s->names.mesh == NULL || s->names.from == NULL || s->names.to == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the names of the layouts");
    return EXIT_DONE;
}

int move_setup_read(const tool_arguments *given, move_setup *out)
{
    *out = (move_setup){.request = {.mesh = given->value[OPT_MESH], .from = given->value[OPT_FROM], .to = given->value[OPT_TO]}};
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
        status = place_count_ranks(out->place, out->mesh, &out->ranks);
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
