/* bench simulate: time, bytes and workspace of moves on meshes of up to a million ranks, by the
 * model of the links; and, with --validate, the error of the model on this machine. */
#include "bench/moves/timed_moves.h"
#include "bench/run/halvings.h"
#include "bench/run/idle_threads.h"
#include "bench/run/sweep.h"
#include "files/file.h"
#include "files/profile.h"
#include "simulate/report.h"

#include <stdlib.h>
#include <string.h>

typedef struct job {
    const tool_arguments *given;
    row_format format;
    simulation_rows out;
    size_t capacity;
    place *place;        /* with --validate; else NULL */
    tsr_profile *links;  /* without --validate; else NULL */
    links_book measured; /* links measured for --validate */
} job;

static int reserve_row(job *j)
{
    if (j->out.count < j->capacity)
        return EXIT_DONE;
    const size_t capacity = 2 * j->capacity + 16;
    simulation *const rows = realloc(j->out.rows, capacity * sizeof *rows);
    if (!rows)
        return complain(EXIT_REFUSED, "there is no memory for %zu moves", capacity);
    j->out.rows = rows;
    j->capacity = capacity;
    return EXIT_DONE;
}

/* Counts the ranks of the mesh that `given` names; refuses a mesh that cannot run here, or of one
 * rank. */
static int count_ranks(const job *j, const tool_arguments *given, int *ranks)
{
    tsr_mesh *mesh;
    int status = parse_mesh(given->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    status = place_count_ranks(j->place, mesh, NULL, ranks);
    if (status == EXIT_DONE && *ranks < 2)
        status = complain(EXIT_REFUSED, "--mesh %s has one rank; --validate measures links, so that it takes 2",
                          given->value[OPT_MESH]);
    tsr_mesh_destroy(mesh);
    return status;
}

/* Measures a move on all processes; `status` is this process's exit status so far. */
static int measure(const job *j, int status, simulation *s, int ranks)
{
    const move_request request = {s->mesh, s->from, s->to, s->shape, s->dtype, s->options.mode, s->links};
    timed_move one = {.rows = NULL}, *const all[] = {&one};
    if (status == EXIT_DONE)
        status = timed_move_create(ranks, &request, &one);
    one.figures = &s->figures;
    status = time_moves(j->place, ranks, &usual_timing, status, all, 1);
    if (status == EXIT_DONE)
        status = timed_moves_judge(one.wrong);
    if (status == EXIT_DONE)
        s->measured = one.seconds;
    timed_move_finish(&one);
    return status;
}

/* Adds a row of --validate: models a move by the measured links, and measures it with the same
 * plan. */
static int validate(job *j, const tool_arguments *given, simulation *row)
{
    const measured_links *links = NULL;
    tool_arguments moved = *given;
    int ranks = 0;
    tsr_mode mode = TSR_MODE_DIRECT;
    int status = place_parse_mode(j->place, given->value[OPT_MODE], &mode);
    if (status == EXIT_DONE)
        status = count_ranks(j, given, &ranks);
    if (status == EXIT_DONE)
        status = links_book_look_up(&j->measured, j->place, ranks, mode, &links);
    if (status != EXIT_DONE)
        return status;
    moved.value[OPT_MODE] = mode_name(mode);
    status = simulation_read(&moved, links->profile, row);
    row->measured_links = links;
    return measure(j, status, row, ranks);
}

static int add_row(job *j, const tool_arguments *given)
{
    const int status = place_agree(j->place, reserve_row(j));
    if (status != EXIT_DONE)
        return status;
    simulation *const row = &j->out.rows[j->out.count++];
    *row = (simulation){.ranks = 0};
    return j->place ? validate(j, given, row) : simulate(given, j->links, row);
}

/* Adds a row for the current mesh or, with --sweep, for each of its halvings and the mesh, fewest
 * ranks first. */
static int add_meshes(job *j, const tool_arguments *now)
{
    if (!now->value[OPT_SWEEP])
        return add_row(j, now);
    tsr_mesh *mesh;
    int status = parse_mesh(now->value[OPT_MESH], &mesh);
    if (status != EXIT_DONE)
        return status;
    for (int times = halvings_count(mesh); times >= 0 && status == EXIT_DONE; times--) {
        char text[SHAPE_TEXT_BYTES];
        tool_arguments halved;
        halvings_choose(now, mesh, times, text, &halved);
        status = add_row(j, &halved);
    }
    tsr_mesh_destroy(mesh);
    return status;
}

static int add_rows(job *j)
{
    static const tool_option order[] = {OPT_MODE, OPT_DTYPE, OPT_SHAPE, OPT_FROM, OPT_MESH};
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

/* Refuses options that exclude each other. */
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
    if (!given->value[OPT_VALIDATE] && (given->value[OPT_ENGINE] || given->value[OPT_DEVICE]))
        return complain(EXIT_USAGE, "--%s says where --validate measures; without --validate nothing is run",
                        given->value[OPT_ENGINE] ? "engine" : "device");
    if (given->value[OPT_LINKS] && given->value[OPT_PROFILE])
        return complain(EXIT_USAGE, "--links and --profile say the same; give one of them");
    for (size_t i = 0; given->value[OPT_VALIDATE] && i < sizeof others / sizeof *others; i++)
        if (given->value[others[i].option])
            return complain(
                EXIT_USAGE,
                "--validate measures the links of this machine and plans as tessera redistribute does; leave out --%s",
                others[i].name);
    return EXIT_DONE;
}

/* Reads the links without --validate: --links, else --profile, else TSR_COST, else the default. */
static int read_links(const tool_arguments *given, tsr_profile **out)
{
    const char *const variable = getenv("TSR_COST");
    if (given->value[OPT_LINKS])
        return profile_parse("--links", given->value[OPT_LINKS], out);
    if (!given->value[OPT_PROFILE] && variable)
        return profile_parse("TSR_COST", variable, out);
    return profile_read(given->value[OPT_PROFILE], out);
}

/* Writes the file of --svg under a temporary name. */
static int draw(const job *j, const char *path, tsr_new_file **out)
{
    char *text;
    size_t bytes;
    simulation_plot(j->out.rows, j->out.count, &text, &bytes);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the picture");
    const int status = file_prepare("--svg", path, text, bytes, out);
    free(text);
    return status;
}

static int report(const job *j)
{
    const int status = simulation_report(j->format, &j->out);
    return status == EXIT_DONE ? finish_stdout() : status;
}

/* Prints the rows; the file of --svg is published only after all is printed. */
static int tell(const job *j)
{
    const char *const path = j->given->value[OPT_SVG];
    tsr_new_file *picture = NULL;
    if (!path)
        return report(j);
    int status = draw(j, path, &picture);
    if (status != EXIT_DONE)
        return status;
    status = report(j);
    if (status == EXIT_DONE)
        return file_publish("--svg", path, picture);
    tsr_new_file_discard(picture);
    return status;
}

static int run_job(job *j)
{
    int status = row_format_read(j->given, &j->format);
    if (status == EXIT_DONE)
        status = check_options(j->given);
    if (status == EXIT_DONE && !j->given->value[OPT_VALIDATE])
        status = read_links(j->given, &j->links);
    if (status == EXIT_DONE && j->given->value[OPT_SVG])
        status = file_check_output("--svg", j->given->value[OPT_SVG]);
    if (status == EXIT_DONE && j->given->value[OPT_VALIDATE])
        status = place_open(j->given, &j->place);
    if (j->place)
        (void)idle_threads_await();
    if (status == EXIT_DONE)
        status = add_rows(j);
    if (status != EXIT_DONE || (j->place && !place_speaks(j->place)))
        return status;
    j->out.place = j->place;
    return tell(j);
}

static int run_simulate(const tool_arguments *given)
{
    job j = {.given = given};
    const int status = run_job(&j);
    for (size_t i = 0; i < j.out.count; i++)
        simulation_finish(&j.out.rows[i]);
    free(j.out.rows);
    links_book_finish(&j.measured);
    tsr_profile_destroy(j.links);
    place_close(j.place);
    return status;
}

const tool_command bench_simulate_command = {
    .name = "bench simulate",
    .summary = "what moves would take on a machine that is not at hand, up to a million ranks",
    .details = "Plans each move and times it by the model of the links: for each kind of link, steps * latency + bytes "
               "/ bandwidth, and the "
               "slower kind counts. Inside a node the bytes are those into the busiest rank, between nodes those into "
               "the busiest node. Where the "
               "profile has tables, these tell what is inside. Nothing is run. --mesh, --shape, --dtype, --mode and "
               "the pair of --from and --to "
               "may be repeated, shapes, dtypes and modes be lists; "
               "--sweep adds the meshes that halving the longest even dim leaves, down to 16 ranks. Of more than 4096 "
               "ranks that hold anything "
               "some "
               "stand for all: up to 256, in whole nodes, fewer where they have very many peers, and those at the "
               "edges of the layouts; all "
               "figures are then estimates, marked ~ (\"estimated\" in JSON).\n\n"
               "--links is a profile as bench calibrate writes it, in the place of a file: seconds and bytes a second, "
               "inside a node into one "
               "rank, between nodes into one node. --validate measures the links of this machine, as bench calibrate "
               "does, then the moves "
               "themselves, planned by those links whatever TSR_COST says, and says how far the model is off. --svg "
               "draws time, bytes and "
               "workspace against ranks.",
    .examples = "  tessera bench simulate --mesh 131072x8 --sweep --ranks-per-node 8 --links 'inside=2e-6,450e9 "
                "between=1e-5,50e9' \\\n"
                "      --shape 1048576x8192 --dtype bf16 --from 'S(0),R' --to 'S(1),R' --from 'S(0),R' --to R,R --svg "
                "moves.svg\n"
                "  tessera bench simulate --mesh 2 --shape 256x256,4096x4096 --from 'S(0)' --to 'S(1)' --from P --to R "
                "--validate --json\n",
    .repeats = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE),
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) | TAKES(OBJECTIVE) |
             TAKES(MAX_WORKSPACE) | TAKES(RANKS_PER_NODE) | TAKES(LINKS) | TAKES(PROFILE) | TAKES(SWEEP) |
             TAKES(VALIDATE) | TAKES(ENGINE) | TAKES(DEVICE) | TAKES(SVG) | TAKES(JSON) | TAKES(CSV),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_simulate,
};
