/* Time, bytes and workspace of moves on meshes of up to a million ranks, by the model of the links; and how far that is from what is
 * measured here. */
#include "calibration.h"
#include "csv.h"
#include "file.h"
#include "halvings.h"
#include "profile.h"
#include "simulation.h"
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
    const tool_arguments *given;
    row_format format;
    place *place; /**< with --validate; else NULL */
    tsr_cost_profile links;
    simulation *rows;
    size_t count, capacity;
    int calibrated;        /**< for how many ranks `links` was measured, 0: not at all; */
    tsr_mode mode;         /**< and how they moved */
    fit_error calibration; /**< of the last one */
} job;

static int reserve_row(job *j)
{
    if (j->count < j->capacity)
        return EXIT_DONE;
    const size_t capacity = 2 * j->capacity + 16;
    simulation *const rows = realloc(j->rows, capacity * sizeof *rows);
    if (rows == NULL)
        return complain(EXIT_REFUSED, "there is no memory for %zu moves", capacity);
    j->rows = rows;
    j->capacity = capacity;
    return EXIT_DONE;
}

/** Links are measured anew for each number of ranks, which share the machine. */
static int calibrate_for(job *j, int ranks, tsr_mode mode)
{
    if (j->calibrated == ranks && j->mode == mode)
        return EXIT_DONE;
    calibration *const c = calloc(1, sizeof *c);
    if (c == NULL)
        return complain(EXIT_REFUSED, "there is no memory for a calibration");
    int status = calibration_create(ranks, mode, c);
    if (status == EXIT_DONE)
        status = calibrate(j->place, c);
    j->links = c->profile;
    j->calibration = c->error;
    j->calibrated = ranks;
    j->mode = mode;
    calibration_finish(c);
    free(c);
    return status;
}

/** Ranks of the mesh that `given` names, which must run here. */
static int count_ranks(const job *j, const tool_arguments *given, int *ranks)
{
    tsr_mesh *mesh;
    int status = parse_mesh(given->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    status = place_count_ranks(j->place, mesh, ranks);
    if (status == EXIT_DONE && *ranks < 2)
        status = complain(EXIT_REFUSED, "--mesh %s has one rank; --validate measures links, so that it takes 2", given->value[OPT_MESH]);
    tsr_mesh_destroy(mesh);
    return status;
}

static int measure(const job *j, simulation *s, int ranks)
{
    const move_request request = {s->mesh, s->from, s->to, s->shape, s->dtype, s->options.mode};
    timed_move one;
    int status = timed_move_create(ranks, &request, &one);
    if (status != EXIT_DONE)
        return status;
    status = time_moves(j->place, ranks, &one, 1);
    if (status == EXIT_DONE)
        s->measured = samples_spread(&one.loops);
    timed_move_finish(&one);
    return status;
}

static int add_row(job *j, const tool_arguments *given)
{
    int ranks = 0;
    tsr_mode mode;
    int status = reserve_row(j);
    if (status == EXIT_DONE)
        status = parse_mode(given->value[OPT_MODE], &mode);
    if (status == EXIT_DONE && j->place != NULL)
        status = count_ranks(j, given, &ranks);
    if (status == EXIT_DONE && j->place != NULL)
        status = calibrate_for(j, ranks, mode);
    if (status != EXIT_DONE)
        return status;
    simulation *const row = &j->rows[j->count++];
    status = simulate(given, &j->links, row);
    return status == EXIT_DONE && j->place != NULL ? measure(j, row, ranks) : status;
}

/** The mesh at hand and, with --sweep, those that halving leaves, fewest ranks first. */
static int add_meshes(job *j, const tool_arguments *now)
{
    if (now->value[OPT_SWEEP] == NULL)
        return add_row(j, now);
    tsr_mesh *mesh;
    int status = parse_mesh(now->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    for (int times = halvings_count(mesh); times >= 0 && status == EXIT_DONE; times--) {
        char text[SHAPE_TEXT_BYTES];
        tool_arguments halved = *now;
        halvings_print(mesh, times, text);
        halved.value[OPT_MESH] = text;
        status = add_row(j, &halved);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static int add_rows(job *j)
{
    static const tool_option order[] = {OPT_MODE, OPT_SHAPE, OPT_FROM, OPT_MESH};
    sweep s;
    int status = sweep_begin(j->given, order, sizeof order / sizeof *order, &s);
    bool more = status == EXIT_DONE;
    while (more) {
        status = add_meshes(j, &s.now);
        more = status == EXIT_DONE && sweep_next(&s);
    }
    sweep_finish(&s);
    return status;
}

static json_t *sum_to_json(tsr_plan_sum sum)
{
    return json_pack("{so so}", "max", sum.max < 0 ? json_null() : json_integer(sum.max), "total",
                     sum.total < 0 ? json_null() : json_integer(sum.total));
}

static json_t *row_to_json(const simulation *s, const char *links)
{
    const tsr_plan_survey *const f = &s->figures;
    const int64_t node = s->options.ranks_per_node;
    return json_pack("{ss sI ss so ss ss ss ss ss so ss sI sb sf so so so s{sI} sI}", "bench", "simulate", "ranks", (json_int_t)s->ranks,
                     "mesh", s->mesh, "shape", sizes_to_json(s->shape.size, s->shape.ndim), "dtype", tsr_dtype_name(s->dtype), "from",
                     s->from, "to", s->to, "mode", mode_name(s->options.mode), "objective", objective_name(s->options.objective),
                     "ranks_per_node", node > 0 ? json_integer(node) : json_null(), "links", links, "planned", (json_int_t)s->planned,
                     "estimated", s->estimated, "seconds", f->seconds, "bytes_received", sum_to_json(f->bytes_received), "lower_bound",
                     sum_to_json(f->lower_bound), "ratio", f->ratio < 0 ? json_null() : json_real(f->ratio), "messages_received", "max",
                     (json_int_t)f->messages_received, "workspace_bytes", (json_int_t)f->workspace_bytes);
}

static int report_rows(const job *j)
{
    int status = EXIT_DONE;
    for (size_t i = 0; i < j->count && status == EXIT_DONE; i++) {
        char links[PROFILE_TEXT_BYTES];
        tsr_cost_print(&j->rows[i].links, links, sizeof links);
        json_t *const row = row_to_json(&j->rows[i], links);
        if (j->place != NULL && row != NULL) {
            json_object_set_new(row, "measured_seconds", spread_to_json(j->rows[i].measured));
            json_object_set_new(row, "error", json_real(simulation_error(&j->rows[i])));
        }
        status = print_row(j->format, row, i == 0);
    }
    return status;
}

static int compare_errors(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/** How far the model is off, over all rows. */
static int print_errors(const job *j)
{
    double *const errors = calloc(j->count, sizeof *errors);
    if (errors == NULL)
        return complain(EXIT_REFUSED, "there is no memory for %zu errors", j->count);
    for (size_t i = 0; i < j->count; i++)
        errors[i] = simulation_error(&j->rows[i]);
    qsort(errors, j->count, sizeof *errors, compare_errors);
    printf("# relative error of the model: %.2f in the median, %.2f at worst; of the calibration itself %.2f and %.2f\n",
           (errors[(j->count - 1) / 2] + errors[j->count / 2]) / 2, errors[j->count - 1], j->calibration.median, j->calibration.max);
    free(errors);
    return EXIT_DONE;
}

static void print_columns(const job *j)
{
    printf("#%9s %12s %16s %20s %8s %12s %14s %14s %6s %9s %10s", "ranks", "mesh", "shape", "move", "mode", "time", "received", "received",
           "ratio", "messages", "workspace");
    printf(j->place != NULL ? " %12s %6s\n" : "\n", "measured", "error");
    printf("#%9s %12s %16s %20s %8s %12s %14s %14s %6s %9s %10s", "", "", "", "", "", "(us)", "(most, B)", "(all, B)", "", "(most)", "(B)");
    printf(j->place != NULL ? " %12s\n" : "\n", "(us)");
}

static void print_figures(const job *j, const simulation *s)
{
    char shape[SHAPE_TEXT_BYTES], ratio[16] = "-", words[64], total[32] = "-";
    const tsr_plan_survey *const f = &s->figures;
    print_shape(s->shape.ndim, s->shape.size, shape);
    snprintf(words, sizeof words, "%s -> %s", s->from, s->to);
    if (f->ratio >= 0)
        snprintf(ratio, sizeof ratio, "%.3f", f->ratio);
    if (f->bytes_received.total >= 0)
        snprintf(total, sizeof total, "%s%lld", s->estimated ? "~" : "", (long long)f->bytes_received.total);
    printf("%10lld %12s %16s %20s %8s %12.2f %14lld %14s %6s %9lld %10zu", (long long)s->ranks, s->mesh, shape, words,
           mode_name(s->options.mode), 1e6 * f->seconds, (long long)f->bytes_received.max, total, ratio, (long long)f->messages_received,
           f->workspace_bytes);
    if (j->place != NULL)
        printf(" %12.2f %6.2f", 1e6 * s->measured.median, simulation_error(s));
    putchar('\n');
}

static int report_text(const job *j)
{
    const simulation *const first = &j->rows[0];
    char links[PROFILE_TEXT_BYTES];
    tsr_cost_print(&j->links, links, sizeof links);
    printf("# links: %s; ", links);
    if (first->options.ranks_per_node > 0)
        printf("%lld ranks a node; ", (long long)first->options.ranks_per_node);
    else
        printf("one node; ");
    printf("%s\n", tsr_dtype_name(first->dtype));
    int status = j->place != NULL ? print_errors(j) : EXIT_DONE;
    print_columns(j);
    for (size_t i = 0; i < j->count; i++)
        print_figures(j, &j->rows[i]);
    return status;
}

/** What does not go together. */
static int check_options(const tool_arguments *given)
{
    static const struct {
        tool_option option;
        const char *name;
    } others[] = {{OPT_LINKS, "links"},
                  {OPT_PROFILE, "profile"},
                  {OPT_RANKS_PER_NODE, "ranks-per-node"},
                  {OPT_OBJECTIVE, "objective"},
                  {OPT_MAX_WORKSPACE, "max-workspace"}};
    if (given->value[OPT_LINKS] != NULL && given->value[OPT_PROFILE] != NULL)
        return complain(EXIT_USAGE, "--links and --profile say the same; give one of them");
    for (size_t i = 0; given->value[OPT_VALIDATE] != NULL && i < sizeof others / sizeof *others; i++)
        if (given->value[others[i].option] != NULL)
            return complain(EXIT_USAGE,
                            "--validate measures the links of this machine and plans as tessera redistribute does; leave out --%s",
                            others[i].name);
    return EXIT_DONE;
}

static int parse_links(const char *what, const char *text, tsr_cost_profile *out)
{
    return tsr_cost_parse(text, out) == TSR_OK ? EXIT_DONE : complain(EXIT_USAGE, "%s: %s", what, tsr_status_message());
}

/** --links, else --profile, else TSR_COST, else the default. */
static int read_links(const tool_arguments *given, tsr_cost_profile *out)
{
    const char *const variable = getenv("TSR_COST");
    if (given->value[OPT_LINKS] != NULL)
        return parse_links("--links", given->value[OPT_LINKS], out);
    if (given->value[OPT_PROFILE] == NULL && variable != NULL)
        return parse_links("TSR_COST", variable, out);
    return profile_read(given->value[OPT_PROFILE], out);
}

static int draw(const job *j)
{
    const char *const path = j->given->value[OPT_SVG];
    if (path == NULL)
        return EXIT_DONE;
    char *text;
    size_t bytes;
    simulation_plot(j->rows, j->count, &text, &bytes);
    if (text == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the picture");
    const int status = file_replace("--svg", path, text, bytes);
    free(text);
    return status;
}

static int run_job(job *j)
{
    int status = row_format_read(j->given, &j->format);
    if (status == EXIT_DONE)
        status = check_options(j->given);
    if (status == EXIT_DONE)
        status = read_links(j->given, &j->links);
    if (status == EXIT_DONE && j->given->value[OPT_SVG] != NULL)
        status = file_check_output("--svg", j->given->value[OPT_SVG]);
    if (status == EXIT_DONE && j->given->value[OPT_VALIDATE] != NULL)
        status = place_open(j->given, &j->place);
    if (status == EXIT_DONE)
        status = add_rows(j);
    if (status != EXIT_DONE || (j->place != NULL && !place_speaks(j->place)))
        return status;
    status = draw(j);
    return status != EXIT_DONE ? status : j->format != ROWS_TEXT ? report_rows(j) : report_text(j);
}

static int run_simulate(const tool_arguments *given)
{
    job j = {.given = given};
    const int status = run_job(&j);
    for (size_t i = 0; i < j.count; i++)
        simulation_finish(&j.rows[i]);
    free(j.rows);
    place_close(j.place);
    return status;
}

const tool_command bench_simulate_command = {
    .name = "bench simulate",
    .summary = "what moves would take on a machine that is not at hand, up to a million ranks",
    .details =
        "Plans each move and times it by the model of the links: for each kind of link, steps * latency + bytes / bandwidth, and the "
        "slower "
        "kind counts. Inside a node the bytes are those into the busiest rank, between nodes those into the busiest node. Nothing is run. "
        "--mesh, --shape, --mode and the pair of --from and --to may be repeated, shapes and modes be lists; --sweep adds the meshes that "
        "halving the longest dim leaves, down to 16 ranks. Of more than 4096 ranks that hold anything some stand for all: up to 256, in "
        "whole nodes, fewer where they have very many peers; totals are then estimates, marked ~ (\"estimated\" in JSON).\n\n"
        "--links is a profile as bench calibrate writes it, in the place of a file: seconds and bytes a second, inside a node into one "
        "rank, "
        "between nodes into one node. --validate measures the links of this machine, as bench calibrate does, then the moves themselves, "
        "and "
        "says how far the model is off. --svg draws time against ranks.",
    .examples = "  tessera bench simulate --mesh 131072x8 --sweep --ranks-per-node 8 --links 'inside=2e-6,450e9 between=1e-5,50e9' \\\n"
                "      --shape 1048576x8192 --dtype bf16 --from 'S(0),R' --to 'S(1),R' --from 'S(0),R' --to R,R --svg moves.svg\n"
                "  tessera bench simulate --mesh 2 --shape 256x256,4096x4096 --from 'S(0)' --to 'S(1)' --from P --to R --validate --json\n",
    .repeats = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE),
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) | TAKES(OBJECTIVE) | TAKES(MAX_WORKSPACE) |
             TAKES(RANKS_PER_NODE) | TAKES(LINKS) | TAKES(PROFILE) | TAKES(SWEEP) | TAKES(VALIDATE) | TAKES(SVG) | TAKES(JSON) | TAKES(CSV),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_simulate,
};
