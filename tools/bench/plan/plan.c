/* bench plan: what one rank's plan of a move costs, on meshes of up to a million ranks. */
#include "bench/run/halvings.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "plan/request.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

/* The results of planning on one mesh. */
typedef struct result {
    int64_t rank, messages_received, messages_sent, bytes_allocated;
    spread seconds;
} result;

static void *count_allocation(void *user, size_t bytes, size_t alignment)
{
    int64_t *const asked = user;
    void *memory;
    if (posix_memalign(&memory, alignment, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    *asked += (int64_t)bytes;
    return memory;
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    (void)bytes;
    free(memory);
}

/* The rank in the middle of the source mesh's row-major order, a typical one: it lies on no
 * diagonal. */
static tsr_status middle_rank(const tsr_mesh *mesh, int64_t *rank)
{
    int64_t coordinate[TSR_MAX_DIMS], at = tsr_mesh_count(mesh) / 2;
    for (int d = tsr_mesh_ndim(mesh) - 1; d >= 0; d--) {
        coordinate[d] = at % tsr_mesh_size(mesh, d);
        at /= tsr_mesh_size(mesh, d);
    }
    return tsr_mesh_rank_at(mesh, coordinate, rank);
}

static tsr_status count_plan(const plan_request *r, const tsr_plan_options *options, const int64_t *asked, result *out)
{
    const int64_t before = *asked;
    tsr_plan *plan;
    tsr_plan_figures figures;
    TSR_TRY(tsr_plan_create(r->from, r->to, options, &plan));
    out->bytes_allocated = *asked - before;
    const tsr_status status = tsr_plan_figures_of(plan, &figures);
    tsr_plan_destroy(plan);
    TSR_TRY(status);
    out->messages_received = figures.messages_received;
    out->messages_sent = figures.messages_sent;
    return TSR_OK;
}

static tsr_status time_plans(const plan_request *r, const tsr_plan_options *options, const bench_settings *settings,
                             double *seconds)
{
    for (int64_t i = -settings->warm_ups; i < settings->iterations; i++) {
        tsr_plan *plan;
        const double start = clock_seconds();
        TSR_TRY(tsr_plan_create(r->from, r->to, options, &plan));
        if (i >= 0)
            seconds[i] = clock_seconds() - start;
        tsr_plan_destroy(plan);
        progress_step(settings->progress);
    }
    return TSR_OK;
}

/* Counts one plan, then times several, in `seconds`. `asked`: the bytes that the request's context
 * has allocated so far. */
static tsr_status measure_plans(const plan_request *r, const bench_settings *settings, double *seconds,
                                const int64_t *asked, result *out)
{
    tsr_plan_options options = r->options;
    if (options.rank == TSR_RANK_NONE)
        TSR_TRY(middle_rank(r->mesh, &options.rank));
    out->rank = options.rank;
    TSR_TRY(count_plan(r, &options, asked, out));
    TSR_TRY(time_plans(r, &options, settings, seconds));
    return tsr_bench_sum_up(seconds, settings->iterations, &out->seconds);
}

static int64_t count_messages(const result *one)
{
    return one->messages_received + one->messages_sent;
}

static json_t *result_to_json(const plan_request *r, const char *mesh, const char *from, const char *to,
                              const bench_settings *settings, const result *one)
{
    return json_pack("{ss sI ss so ss ss ss ss sI so sI sI sI sI sI sI}", "bench", "plan", "ranks",
                     (json_int_t)tsr_mesh_count(r->mesh), "mesh", mesh, "shape",
                     sizes_to_json(tsr_layout_shape(r->from), tsr_layout_ndim(r->from)), "dtype",
                     tsr_dtype_name(tsr_layout_dtype(r->from)), "from", from, "to", to, "mode",
                     mode_name(r->options.mode), "rank", (json_int_t)one->rank, "seconds", spread_to_json(one->seconds),
                     "bytes_allocated", (json_int_t)one->bytes_allocated, "messages", (json_int_t)count_messages(one),
                     "messages_received", (json_int_t)one->messages_received, "messages_sent",
                     (json_int_t)one->messages_sent, "iterations", (json_int_t)settings->iterations, "warm_ups",
                     (json_int_t)settings->warm_ups);
}

static void print_columns(const plan_request *r, const char *from, const char *to)
{
    say("# one rank's plan from %s to %s, %s\n", from, to, mode_name(r->options.mode));
    say("#%9s %20s %20s %5s %10s %12s %12s %12s %12s %9s\n", "ranks", "mesh", "shape", "type", "rank", "time", "min",
        "max", "allocated", "messages");
    say("#%9s %20s %20s %5s %10s %12s %12s %12s %12s\n", "", "", "", "", "", "(us)", "(us)", "(us)", "(B)");
}

static void print_result(const plan_request *r, const char *mesh, const result *one)
{
    char shape[SHAPE_TEXT_BYTES];
    print_shape(tsr_layout_ndim(r->from), tsr_layout_shape(r->from), shape);
    say(" %9lld %20s %20s %5s %10lld %12.2f %12.2f %12.2f %12lld %9lld\n", (long long)tsr_mesh_count(r->mesh), mesh,
        shape, tsr_dtype_name(tsr_layout_dtype(r->from)), (long long)one->rank, 1e6 * one->seconds.median,
        1e6 * one->seconds.min, 1e6 * one->seconds.max, (long long)one->bytes_allocated,
        (long long)count_messages(one));
}

static int report(bench_run *run, const plan_request *r, const result *one, bool begins_table)
{
    int status = EXIT_DONE;
    char *const mesh = mesh_text(r->mesh), *const from = layout_text(r->from), *const to = layout_text(r->to);
    progress_clear(run->settings.progress);
    if (!mesh || !from || !to)
        status = complain(EXIT_REFUSED, "there is no memory for the names of the layouts");
    else if (run->format != ROWS_TEXT)
        status = bench_run_print(run, result_to_json(r, mesh, from, to, &run->settings, one));
    else {
        if (begins_table)
            print_columns(r, from, to);
        print_result(r, mesh, one);
    }
    free(mesh);
    free(from);
    free(to);
    return status;
}

/* Measures and reports the mesh that `given` names, in a context that counts its allocations in
 * `asked`. */
static int measure_in(tsr_context *context, const int64_t *asked, bench_run *run, const tool_arguments *given,
                      bool begins_table)
{
    plan_request request;
    result one = {0};
    double *const seconds = calloc((size_t)run->settings.iterations, sizeof *seconds);
    int status = plan_request_read(given, context, &request);
    if (status == EXIT_DONE && !seconds)
        status = complain(EXIT_REFUSED, "there is no memory for the times of %lld plans",
                          (long long)run->settings.iterations);
    if (status == EXIT_DONE && measure_plans(&request, &run->settings, seconds, asked, &one) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE)
        status = report(run, &request, &one, begins_table);
    free(seconds);
    plan_request_finish(&request);
    return status;
}

static int measure_mesh(bench_run *run, const tool_arguments *given, bool begins_table)
{
    int64_t asked = 0;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){count_allocation, release, &asked};
    tsr_context *context;
    if (tsr_context_create(&options, &context) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    const int status = measure_in(context, &asked, run, given, begins_table);
    tsr_context_destroy(context);
    return status;
}

/* Measures the mesh and its halvings, fewest ranks first. */
static int measure_halvings(bench_run *run, const tool_arguments *given, bool begins_table)
{
    tsr_mesh *mesh;
    int status = parse_mesh(given->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    for (int times = halvings_count(mesh); times >= 0 && status == EXIT_DONE; times--) {
        char text[SHAPE_TEXT_BYTES];
        tool_arguments halved;
        halvings_choose(given, mesh, times, text, &halved);
        status = measure_mesh(run, &halved, begins_table);
        begins_table = false;
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    return now->value[OPT_SWEEP] ? measure_halvings(run, now, begins_table) : measure_mesh(run, now, begins_table);
}

/* Counts the timed plans and warm-ups, for all halvings with --sweep. */
static int count_steps(const bench_run *run, const tool_arguments *now, int64_t *out)
{
    tsr_mesh *mesh;
    *out = run->settings.warm_ups + run->settings.iterations;
    if (!now->value[OPT_SWEEP])
        return EXIT_DONE;
    const int status = parse_mesh(now->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    *out *= 1 + halvings_count(mesh);
    tsr_mesh_destroy(mesh);
    return EXIT_DONE;
}

static const tool_option axes[] = {OPT_MODE, OPT_FROM, OPT_MESH, OPT_DTYPE, OPT_SHAPE};

const bench_kind bench_plan_kind = {.name = "bench plan",
                                    .axes = axes,
                                    .axis_count = sizeof axes / sizeof *axes,
                                    .within = 3,
                                    .sizes = SIZES_FOR_SHAPES,
                                    .settings = {.iterations = 11, .warm_ups = 1},
                                    .measure = measure,
                                    .steps = count_steps};

static int run_bench(const tool_arguments *given)
{
    if (given->value[OPT_SWEEP] && given->value[OPT_RANK])
        return complain(EXIT_USAGE, "--sweep takes the rank in the middle of each mesh; leave out --rank");
    return bench_run_alone(&bench_plan_kind, given);
}

const tool_command bench_plan_command = {
    .name = "bench plan",
    .summary = "what one rank's plan costs, on meshes of up to a million ranks",
    .details = "Plans one rank's part of a move over and over: seconds of a plan, all bytes that it asks of the "
               "allocator, and the messages that "
               "it "
               "holds, received and sent. Nothing is run. The rank is that in the middle of the mesh's row-major order "
               "where --rank does not say. "
               "--sweep prints a line for the mesh and for each that halving its longest even dim leaves, down to 16 "
               "ranks, fewest first; those "
               "have unnamed dims and ranks from 0 up.\n\n"
               "-b, -e and -f take the place of --shape and step through sizes of the largest shard; --mesh and the "
               "pair of --from and --to may "
               "be "
               "repeated; --shape, --dtype and --mode may be repeated and be lists. Every combination is planned, "
               "sizes fastest.",
    .examples =
        "  tessera bench plan --mesh 128x64x128 --shape 1024x1024x1024x1024 --dtype f32 --from 'S(0),S(1),S(2)' --to "
        "'S(1),S(0),S(2)'\n"
        "  tessera bench plan --mesh 1048576 --shape 5000000x64 --from 'S(0)' --to 'S(0;balanced)' --sweep --json\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(BEGIN) | TAKES(END) |
             TAKES(FACTOR) | TAKES(MODE) | TAKES(OBJECTIVE) | TAKES(MAX_WORKSPACE) | TAKES(RANKS_PER_NODE) |
             TAKES(NODES) | TAKES(RANK) | TAKES(SWEEP) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(JSON) | TAKES(CSV),
    .repeats = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE),
    .requires_all = TAKES(MESH) | TAKES(FROM) | TAKES(TO),
    .defaults = {{OPT_RANK, "the one in the middle of the mesh"}, {OPT_WARM_UP, "1"}},
    .run = run_bench,
};
