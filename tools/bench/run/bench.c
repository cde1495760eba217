#include "bench/run/bench.h"

#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

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
    if (status == EXIT_DONE && *out > TSR_BENCH_MOST_ITERATIONS)
        return complain(EXIT_REFUSED, "%s is %s; %lld are the most", option, text,
                        (long long)TSR_BENCH_MOST_ITERATIONS);
    return status;
}

static int parse_warm_up(const char *text, bench_settings *out)
{
    if (!text)
        return EXIT_DONE;
    out->warm_seconds = 0;
    const int status = parse_index("--warm-up", text, &out->warm_ups);
    if (status == EXIT_DONE && out->warm_ups > TSR_BENCH_MOST_ITERATIONS)
        return complain(EXIT_REFUSED, "--warm-up is %s; %lld are the most", text, (long long)TSR_BENCH_MOST_ITERATIONS);
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

static void count_step(void *line)
{
    progress_step(line);
}

tsr_bench_options bench_options(const bench_settings *s, const place *p, int rank)
{
    tsr_bench_options o = TSR_BENCH_OPTIONS_INIT;
    o.iterations = s->iterations;
    o.warm_ups = s->warm_ups;
    o.calls = s->calls;
    o.loop_seconds = s->loop_seconds;
    o.warm_seconds = s->warm_seconds;
    o.no_check = !s->checks;
    o.no_copy = 1;
    o.device = place_device(p, rank);
    o.stream = place_stream(p, rank);
    o.step = rank == 0 && place_speaks(p) ? count_step : NULL;
    o.step_arg = s->progress;
    return o;
}

bool bench_keeps(const place *p, int rank)
{
    return rank == 0 || place_launched(p) > 0;
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
