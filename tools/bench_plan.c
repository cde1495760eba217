/* What it costs to plan: one rank's plan of a move, on meshes of up to a million ranks. */
#include "bench.h"
#include "csv.h"
#include "halvings.h"
#include "plan_request.h"
#include "report.h"
#include "sweep.h"

#include <stdlib.h>
#include <tessera/explain.h>
#include <tessera/sys/status.h>

#define ITERATIONS 11

/** What one mesh's plan came to. */
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

/** The rank at half of the source mesh's row-major order, which lies on no diagonal. */
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

static tsr_status time_plans(const plan_request *r, const tsr_plan_options *options, samples *times)
{
    for (int64_t i = 0; i < times->iterations; i++) {
        tsr_plan *plan;
        const double start = clock_seconds();
        TSR_TRY(tsr_plan_create(r->from, r->to, options, &plan));
        times->seconds[i] = clock_seconds() - start;
        tsr_plan_destroy(plan);
    }
    return TSR_OK;
}

/** The plan that is counted comes first, and warms up. `asked` is what the request's context counts. */
static tsr_status measure(const plan_request *r, samples *times, const int64_t *asked, result *out)
{
    tsr_plan_options options = r->options;
    if (options.rank == TSR_RANK_NONE)
        TSR_TRY(middle_rank(r->mesh, &options.rank));
    out->rank = options.rank;
    TSR_TRY(count_plan(r, &options, asked, out));
    TSR_TRY(time_plans(r, &options, times));
    out->seconds = samples_spread(times);
    return TSR_OK;
}

static int64_t count_messages(const result *one)
{
    return one->messages_received + one->messages_sent;
}

static json_t *result_to_json(const plan_request *r, const char *mesh, const char *from, const char *to, const result *one)
{
    return json_pack("{ss sI ss so ss ss ss ss sI so sI sI sI sI}", "bench", "plan", "ranks", (json_int_t)tsr_mesh_count(r->mesh), "mesh",
                     mesh, "shape", sizes_to_json(tsr_layout_shape(r->from), tsr_layout_ndim(r->from)), "dtype",
                     tsr_dtype_name(tsr_layout_dtype(r->from)), "from", from, "to", to, "mode", mode_name(r->options.mode), "rank",
                     (json_int_t)one->rank, "seconds", spread_to_json(one->seconds), "bytes_allocated", (json_int_t)one->bytes_allocated,
                     "messages", (json_int_t)count_messages(one), "messages_received", (json_int_t)one->messages_received, "messages_sent",
                     (json_int_t)one->messages_sent);
}

static void print_columns(const char *from, const char *to)
{
    printf("# one rank's plan from %s to %s: microseconds, bytes allocated, messages received and sent\n", from, to);
    printf("%10s %20s %10s %12s %12s %12s %12s %9s\n", "ranks", "mesh", "rank", "median", "min", "max", "bytes", "messages");
}

static void print_result(const plan_request *r, const char *mesh, const result *one)
{
    printf("%10lld %20s %10lld %12.2f %12.2f %12.2f %12lld %9lld\n", (long long)tsr_mesh_count(r->mesh), mesh, (long long)one->rank,
           1e6 * one->seconds.median, 1e6 * one->seconds.min, 1e6 * one->seconds.max, (long long)one->bytes_allocated,
           (long long)count_messages(one));
}

/** How a row is printed, and whether it is the first of its table and of all. */
typedef struct manner {
    row_format format;
    bool begins_table, first;
} manner;

static int report(const plan_request *r, const result *one, manner how)
{
    int status = EXIT_DONE;
    char *const mesh = mesh_text(r->mesh), *const from = layout_text(r->from), *const to = layout_text(r->to);
    if (mesh == NULL || from == NULL || to == NULL)
        status = complain(EXIT_REFUSED, "there is no memory for the names of the layouts");
    else if (how.format != ROWS_TEXT)
        status = print_row(how.format, result_to_json(r, mesh, from, to, one), how.first);
    else {
        if (how.begins_table)
            print_columns(from, to);
        print_result(r, mesh, one);
    }
    free(mesh);
    free(from);
    free(to);
    return status;
}

/** One line for the mesh that `given` names. */
static int run_mesh(const tool_arguments *given, manner how)
{
    int64_t asked = 0;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.allocator = (tsr_allocator){count_allocation, release, &asked};
    tsr_context *context;
    if (tsr_context_create(&options, &context) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    plan_request request;
    samples times = {0};
    int64_t iterations;
    result one = {0};
    int status = plan_request_read(given, context, &request);
    if (status == EXIT_DONE)
        status = parse_iterations(given->value[OPT_ITERATIONS], ITERATIONS, &iterations);
    if (status == EXIT_DONE)
        status = samples_create(1, iterations, &times);
    if (status == EXIT_DONE && measure(&request, &times, &asked, &one) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE)
        status = report(&request, &one, how);
    free(times.seconds);
    plan_request_finish(&request);
    tsr_context_destroy(context);
    return status;
}

/** The mesh and those that halving leaves, fewest ranks first. */
static int run_halvings(const tool_arguments *given, manner how)
{
    tsr_mesh *mesh;
    int status = parse_mesh(given->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    for (int times = halvings_count(mesh); times >= 0 && status == EXIT_DONE; times--) {
        char text[SHAPE_TEXT_BYTES];
        tool_arguments halved = *given;
        halvings_print(mesh, times, text);
        halved.value[OPT_MESH] = text;
        status = run_mesh(&halved, how);
        how.begins_table = how.first = false;
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static int run_one(const tool_arguments *given, bool first)
{
    manner how = {.begins_table = true, .first = first};
    const int status = row_format_read(given, &how.format);
    if (status != EXIT_DONE)
        return status;
    return given->value[OPT_SWEEP] != NULL ? run_halvings(given, how) : run_mesh(given, how);
}

static int run_bench_plan(const tool_arguments *given)
{
    static const tool_option order[] = {OPT_MODE, OPT_DTYPE, OPT_SHAPE, OPT_FROM, OPT_MESH};
    if (given->value[OPT_SWEEP] != NULL && given->value[OPT_RANK] != NULL)
        return complain(EXIT_USAGE, "--sweep takes the rank in the middle of each mesh; leave out --rank");
    return sweep_run(given, order, sizeof order / sizeof *order, run_one);
}

const tool_command bench_plan_command = {
    .name = "bench plan",
    .summary = "what one rank's plan costs, on meshes of up to a million ranks",
    .details =
        "Plans one rank's part of a move over and over: seconds of a plan, all bytes that it asks of the allocator, and the messages that "
        "it "
        "holds, received and sent. Nothing is run. The rank is that in the middle of the mesh's row-major order where --rank does not say. "
        "--sweep prints a line for the mesh and for each that halving its longest dim leaves, down to 16 ranks, fewest first; those "
        "have unnamed dims and ranks from 0 up. --mesh, --shape, --dtype, --mode and the pair of --from and --to may be repeated.",
    .examples =
        "  tessera bench plan --mesh 128x64x128 --shape 1024x1024x1024x1024 --dtype f32 --from 'S(0),S(1),S(2)' --to 'S(1),S(0),S(2)'\n"
        "  tessera bench plan --mesh 1048576 --shape 5000000x64 --from 'S(0)' --to 'S(0;balanced)' --sweep --json\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) | TAKES(OBJECTIVE) | TAKES(MAX_WORKSPACE) |
             TAKES(RANKS_PER_NODE) | TAKES(RANK) | TAKES(SWEEP) | TAKES(ITERATIONS) | TAKES(JSON) | TAKES(CSV),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_bench_plan,
};
