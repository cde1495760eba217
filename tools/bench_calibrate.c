/* What the links of this engine cost: times of moves of many sizes, and the latency and bandwidth that fit them best. */
#include "calibration.h"
#include "file.h"
#include "profile.h"
#include "report.h"

/** Of rank threads where nobody says how many: as many as cores, within these. */
#define LEAST_RANKS 2
#define MOST_RANKS  8

typedef struct job {
    place *place;
    calibration found;
    const char *output;
} job;

static json_t *points_to_json(const job *j)
{
    json_t *const array = json_array();
    for (size_t i = 0; i < j->found.count; i++) {
        const fit_point *const m = &j->found.measured[i];
        json_t *const row = json_pack("{ss sI sf sf}", "to", j->found.moves[i].request.to, "bytes", (json_int_t)j->found.moves[i].bytes,
                                      "seconds", m->seconds, "model", fit_seconds(&j->found.profile.inside, m->bytes));
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
                                mode_name(j->found.mode), "ranks", j->found.ranks, "inside", link_to_json(&j->found.profile.inside),
                                "between", link_to_json(&j->found.profile.between), "points", points_to_json(j), "error", "median",
                                j->found.error.median, "max", j->found.error.max));
}

static int report_text(const job *j)
{
    const tsr_link *const inside = &j->found.profile.inside;
    char text[PROFILE_TEXT_BYTES];
    tsr_cost_print(&j->found.profile, text, sizeof text);
    printf("# %d ranks, engine %s, %s: %.2f us and %.2f GB/s into one rank\n", j->found.ranks, place_engine(j->place),
           mode_name(j->found.mode), 1e6 * inside->latency, 1e-9 * inside->bandwidth);
    printf("# relative error of the model: %.2f in the median, %.2f at worst\n", j->found.error.median, j->found.error.max);
    printf("#%13s %8s %11s %11s\n#%13s %8s %11s %11s\n", "received", "to", "time", "model", "(B)", "", "(us)", "(us)");
    for (size_t i = 0; i < j->found.count; i++)
        printf(" %13lld %8s %11.2f %11.2f\n", (long long)j->found.moves[i].bytes, j->found.moves[i].request.to,
               1e6 * j->found.measured[i].seconds, 1e6 * fit_seconds(inside, j->found.measured[i].bytes));
    printf("%s\n", text);
    return EXIT_DONE;
}

static int write_profile(const job *j)
{
    char comment[160];
    snprintf(comment, sizeof comment,
             "inside: tessera bench calibrate, %d ranks, engine %s, %s; relative error %.2f in the median, %.2f at worst", j->found.ranks,
             place_engine(j->place), mode_name(j->found.mode), j->found.error.median, j->found.error.max);
    return profile_write(j->output, comment, &j->found.profile);
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
        return complain(EXIT_REFUSED, "--ranks is %lld; from %d to %d ranks can be measured", (long long)ranks, LEAST_RANKS,
                        MAX_RANK_THREADS);
    *out = (int)ranks;
    return EXIT_DONE;
}

static int read_job(const tool_arguments *given, job *j)
{
    int ranks = 0;
    tsr_mode mode;
    j->output = given->value[OPT_OUTPUT];
    int status = place_open(given, &j->place);
    if (status == EXIT_DONE)
        status = place_parse_mode(j->place, given->value[OPT_MODE], &mode);
    if (status == EXIT_DONE)
        status = read_ranks(j->place, given->value[OPT_RANKS], &ranks);
    if (status == EXIT_DONE && j->output != NULL)
        status = file_check_output("--output", j->output);
    if (status == EXIT_DONE)
        status = calibration_create(ranks, mode, &j->found);
    return status == EXIT_DONE ? profile_read(given->value[OPT_PROFILE], &j->found.profile) : status;
}

static int run_job(const tool_arguments *given, job *j)
{
    int status = read_job(given, j);
    status = place_agree(j->place, status);
    if (status == EXIT_DONE)
        status = calibrate(j->place, &j->found);
    if (status != EXIT_DONE || !place_speaks(j->place))
        return status;
    if (j->output != NULL)
        status = write_profile(j);
    return status != EXIT_DONE ? status : given->value[OPT_JSON] != NULL ? report_json(j) : report_text(j);
}

static int run_calibrate(const tool_arguments *given)
{
    job j = {.place = NULL};
    const int status = run_job(given, &j);
    calibration_finish(&j.found);
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
