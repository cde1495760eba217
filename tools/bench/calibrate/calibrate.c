/* bench calibrate: times moves of many sizes, and prints the latency and bandwidth of links that
 * fit them best, and tables of a rank's own work. */
#include "bench/calibrate/calibration.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "files/file.h"
#include "files/profile.h"

#include <stdlib.h>

/* Bounds of the default of --ranks, which is the number of cores; LEAST_RANKS also bounds
 * --ranks. */
#define LEAST_RANKS 2
#define MOST_RANKS  8

typedef struct job {
    place *place;
    const char *output;
    tsr_profile *given; /* the value of --profile */
    calibration found;
} job;

/* The fields that all points share. */
static json_t *facts_to_json(const job *j)
{
    const calibration_request *const r = &j->found.request;
    return json_pack("{ss ss ss ss si ss sI sI}", "bench", "calibrate", "engine", place_engine(j->place), "device",
                     place_device_name(j->place), "mode", mode_name(r->mode), "ranks", r->ranks, "dtype",
                     tsr_dtype_name(r->dtype), "iterations", (json_int_t)r->settings.iterations, "warm_ups",
                     (json_int_t)r->settings.warm_ups);
}

static const char *link_name(const calibration *c, size_t point)
{
    return point < c->inside ? "inside" : "between";
}

static json_t *point_to_json(const calibration *c, size_t i)
{
    const timed_move *const m = c->moves[i];
    const calibrated_point *const p = &c->points[i];
    return json_pack("{ss ss sI sf sf sf sf so}", "link", link_name(c, i), "to", m->request.to, "bytes",
                     (json_int_t)p->at.bytes, "seconds", p->seconds.median, "seconds_min", p->seconds.min,
                     "seconds_max", p->seconds.max, "model", fit_seconds(calibration_link(c, i), p->at.bytes), "wrong",
                     c->request.settings.checks ? json_integer(m->wrong) : json_null());
}

static json_t *points_to_json(const calibration *c)
{
    json_t *array = json_array();
    for (size_t i = 0; i < c->count; i++)
        array = json_with_item(array, point_to_json(c, i));
    return array;
}

static json_t *link_to_json(const tsr_link *link)
{
    return json_pack("{sf sf}", "latency", link->latency, "bandwidth", link->bandwidth);
}

/* The error of a link (0: inside, 1: between), null if it was not measured. */
static json_t *error_to_json(const calibration *c, int link)
{
    const bool measured = link == 0 ? c->inside > 0 : c->inside < c->count;
    return measured ? json_pack("{sf sf}", "median", c->error[link].median, "max", c->error[link].max) : json_null();
}

static json_t *shape_to_json(const kernel_call_point *point)
{
    int count = 0;
    while (count < 4 && point->size[count] > 0)
        count++;
    return sizes_to_json(point->size, count);
}

/* Calls of kernels that were timed. */
static json_t *kernels_to_json(const calibration *c)
{
    json_t *array = json_array();
    for (size_t i = 0; i < c->kernels.count; i++) {
        const kernel_call_point *const p = &c->kernels.points[i];
        if (p->seconds.median == 0)
            continue;
        array =
            json_with_item(array, json_pack("{ss so sI sI sb sf sf sf sf}", "op", p->op, "size", shape_to_json(p),
                                            "bytes", (json_int_t)p->touched, "flops", (json_int_t)p->flops, "fitted",
                                            (int)p->fitted, "seconds", p->seconds.median, "seconds_min", p->seconds.min,
                                            "seconds_max", p->seconds.max, "model", kernels_seconds(p, c->measured)));
    }
    return array;
}

static json_t *kernel_error_to_json(const calibration *c)
{
    if (c->kernel_checks == 0)
        return json_null();
    return json_pack("{sf sf}", "median", c->kernel_error.median, "max", c->kernel_error.max);
}

/* The text of the whole profile. */
static json_t *profile_to_json(const tsr_profile *profile)
{
    char *const text = profile_text(profile);
    json_t *const value = text ? json_string(text) : NULL;
    free(text);
    return value;
}

static json_t *answer_to_json(const job *j)
{
    const calibration *const c = &j->found;
    json_t *row = facts_to_json(j);
    row = json_with_field(row, "inside", link_to_json(&c->profile.inside));
    row = json_with_field(row, "between", link_to_json(&c->profile.between));
    row = json_with_field(row, "points", points_to_json(c));
    row = json_with_field(row, "error", error_to_json(c, 0));
    row = json_with_field(row, "between_error", error_to_json(c, 1));
    row = json_with_field(row, "profile", profile_to_json(c->measured));
    row = json_with_field(row, "kernels", kernels_to_json(c));
    row = json_with_field(row, "kernel_error", kernel_error_to_json(c));
    return row;
}

/* Prints a line for each point. */
static int print_csv(bench_run *run, const job *j)
{
    const calibration *const c = &j->found;
    int status = EXIT_DONE;
    for (size_t i = 0; i < c->count && status == EXIT_DONE; i++)
        status = bench_run_print(run, json_with_fields(facts_to_json(j), point_to_json(c, i)));
    return status;
}

static void print_link(const calibration *c, int link)
{
    const tsr_link *const cost = link == 0 ? &c->profile.inside : &c->profile.between;
    say("# %s: %.2f us and %.2f GB/s into one %s; relative error of the model: %.2f in the median, %.2f at worst\n",
        link == 0 ? "inside a node" : "between nodes", 1e6 * cost->latency, 1e-9 * cost->bandwidth,
        link == 0 ? "rank" : "node", c->error[link].median, c->error[link].max);
}

static void print_points(const calibration *c)
{
    say("#%9s %13s %8s %11s %11s %8s %8s\n#%9s %13s %8s %11s %11s\n", "link", "received", "to", "time", "model",
        "#wrong", "noise", "", "(B)", "", "(us)", "(us)");
    for (size_t i = 0; i < c->count; i++) {
        const calibrated_point *const p = &c->points[i];
        say(" %9s %13.0f %8s %11.2f %11.2f %8s %8.2f\n", link_name(c, i), p->at.bytes, c->moves[i]->request.to,
            1e6 * p->seconds.median, 1e6 * fit_seconds(calibration_link(c, i), p->at.bytes),
            c->request.settings.checks ? "0" : "N/A", spread_noise(p->seconds));
    }
}

static void print_kernels(const calibration *c)
{
    say("#%18s %22s %14s %11s %11s %8s %8s\n#%18s %22s %14s %11s %11s\n", "kernel", "size", "touched", "time", "model",
        "fitted", "noise", "", "", "(B)", "(us)", "(us)");
    for (size_t i = 0; i < c->kernels.count; i++) {
        char size[SHAPE_TEXT_BYTES];
        const kernel_call_point *const p = &c->kernels.points[i];
        int ndim = 0;
        while (ndim < 4 && p->size[ndim] > 0)
            ndim++;
        print_shape(ndim, p->size, size);
        if (p->seconds.median > 0)
            say(" %18s %22s %14.0f %11.2f %11.2f %8s %8.2f\n", p->op, size, p->touched, 1e6 * p->seconds.median,
                1e6 * kernels_seconds(p, c->measured), p->fitted ? "yes" : "no", spread_noise(p->seconds));
    }
}

static void print_kernel_error(const calibration *c)
{
    if (c->kernel_checks > 0)
        say("# kernels: relative error of the model over %zu calls that were not fitted: %.2f in the median, %.2f at "
            "worst\n",
            c->kernel_checks, c->kernel_error.median, c->kernel_error.max);
}

/* Prints the tables, then the profile. */
static int print_text(const job *j)
{
    const calibration *const c = &j->found;
    const calibration_request *const r = &c->request;
    char *const text = profile_text(c->measured);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the profile");
    say("# %d ranks, engine %s, device %s, %s, %s\n", r->ranks, place_engine(j->place), place_device_name(j->place),
        mode_name(r->mode), tsr_dtype_name(r->dtype));
    if (c->inside > 0)
        print_link(c, 0);
    if (c->inside < c->count)
        print_link(c, 1);
    print_points(c);
    if (c->kernels.count > 0) {
        print_kernels(c);
        print_kernel_error(c);
    }
    say_text(text);
    say_text("\n");
    free(text);
    return EXIT_DONE;
}

/* Writes the file of --output under a temporary name. */
static int write_profile(const job *j, tsr_new_file **out)
{
    const calibration *const c = &j->found;
    const int link = c->inside > 0 ? 0 : 1;
    char comment[200];
    snprintf(comment, sizeof comment,
             "%s: tessera bench calibrate, %d ranks, engine %s, device %s, %s; relative error %.2f in the median, %.2f "
             "at worst",
             c->inside == 0         ? "between"
             : c->inside < c->count ? "inside and between"
                                    : "inside",
             c->request.ranks, place_engine(j->place), place_device_name(j->place), mode_name(c->request.mode),
             c->error[link].median, c->error[link].max);
    return profile_prepare(j->output, comment, c->measured, out);
}

static int usual_ranks(void)
{
    const int cores = tsr_bench_cores();
    return cores < LEAST_RANKS ? LEAST_RANKS : cores > MOST_RANKS ? MOST_RANKS : cores;
}

static int read_ranks(const place *p, const char *text, int *out)
{
    const int launched = place_launched(p);
    int64_t ranks;
    const int status = parse_count("--ranks", text, launched > 0 ? launched : usual_ranks(), &ranks);
    if (status != EXIT_DONE)
        return status;
    if (launched > 0 && ranks != launched)
        return complain(EXIT_REFUSED, "--ranks is %lld, but %d were launched", (long long)ranks, launched);
    if (ranks < LEAST_RANKS || ranks > MAX_RANK_THREADS)
        return complain(EXIT_REFUSED, "--ranks is %lld; from %d to %d ranks can be measured", (long long)ranks,
                        LEAST_RANKS, MAX_RANK_THREADS);
    *out = (int)ranks;
    return EXIT_DONE;
}

static int read_request(const tool_arguments *now, const bench_run *run, job *j, calibration_request *out)
{
    j->output = now->value[OPT_OUTPUT];
    *out = calibration_usual(0, TSR_MODE_DIRECT);
    int status = place_open(now, &j->place);
    if (status == EXIT_DONE)
        status = place_parse_mode(j->place, now->value[OPT_MODE], &out->mode);
    if (status == EXIT_DONE)
        status = parse_dtype(now->value[OPT_DTYPE], &out->dtype);
    if (status == EXIT_DONE)
        status = read_ranks(j->place, now->value[OPT_RANKS], &out->ranks);
    if (status == EXIT_DONE && j->output)
        status = file_check_output("--output", j->output);
    out->settings = run->settings;
    if (run->sizes.begin > 0)
        out->sizes = run->sizes;
    if (status != EXIT_DONE)
        return status;
    status = profile_read(now->value[OPT_PROFILE], &j->given);
    out->profile = j->given;
    out->kernels = true;
    return status;
}

static int print_answer(bench_run *run, const job *j)
{
    int status = EXIT_DONE;
    if (run->format == ROWS_JSON)
        status = bench_run_print(run, answer_to_json(j));
    else if (run->format == ROWS_CSV)
        status = print_csv(run, j);
    else
        status = print_text(j);
    return status == EXIT_DONE ? finish_stdout() : status;
}

/* Prints the answer; the file of --output is published only after all is printed. */
static int report(bench_run *run, const job *j)
{
    tsr_new_file *profile = NULL;
    if (!j->output)
        return print_answer(run, j);
    int status = write_profile(j, &profile);
    if (status != EXIT_DONE)
        return status;
    status = print_answer(run, j);
    if (status == EXIT_DONE)
        return file_publish("--output", j->output, profile);
    tsr_new_file_discard(profile);
    return status;
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    job j = {.place = NULL};
    calibration_request request;
    (void)begins_table;
    int status = read_request(now, run, &j, &request);
    status = place_agree(j.place, status);
    if (status == EXIT_DONE)
        status = calibrate(j.place, &request, &j.found);
    if (status == EXIT_DONE && place_speaks(j.place))
        status = report(run, &j);
    calibration_finish(&j.found);
    tsr_profile_destroy(j.given);
    place_close(j.place);
    return status;
}

static int count_steps(const bench_run *run, const tool_arguments *now, int64_t *out)
{
    calibration_request request = calibration_usual(LEAST_RANKS, TSR_MODE_DIRECT);
    if (run->sizes.begin > 0)
        request.sizes = run->sizes;
    request.settings = run->settings;
    request.kernels = true;
    int64_t ranks = LEAST_RANKS;
    int status = parse_dtype(now->value[OPT_DTYPE], &request.dtype);
    if (status == EXIT_DONE)
        status = parse_count("--ranks", now->value[OPT_RANKS], usual_ranks(), &ranks);
    request.ranks = ranks < LEAST_RANKS ? LEAST_RANKS : ranks > MAX_RANK_THREADS ? MAX_RANK_THREADS : (int)ranks;
    *out = calibration_steps(&request);
    return status;
}

/* Refuses fewer sizes than a fit needs, and more than a calibration holds. */
static int check_sizes(const size_range *sizes)
{
    if (sizes->begin == 0)
        return EXIT_DONE;
    const int64_t count = size_range_count(sizes);
    if (count < 2 || count > CALIBRATION_SIZES)
        return complain(EXIT_REFUSED, "a line is fitted to 2 to %d sizes; --begin, --end and --factor make %lld",
                        CALIBRATION_SIZES, (long long)count);
    return EXIT_DONE;
}

static const tool_option axes[] = {OPT_ENGINE, OPT_DEVICE, OPT_MODE, OPT_RANKS, OPT_DTYPE};

static const bench_kind kind = {
    .name = "bench calibrate",
    .axes = axes,
    .axis_count = sizeof axes / sizeof *axes,
    .sizes = SIZES_OF_ITS_OWN,
    .settings = {.iterations = 5, .loop_seconds = CALIBRATION_LOOP_SECONDS, .warm_seconds = 0.3},
    .measure = measure,
    .steps = count_steps};

static int run_all(bench_run *run)
{
    progress line;
    int status = check_sizes(&run->sizes);
    if (status == EXIT_DONE && !run->single && run->sweep.now.value[OPT_OUTPUT])
        status = complain(EXIT_USAGE, "--output takes one profile, but %lld are measured",
                          (long long)sweep_count(&run->sweep));
    if (status != EXIT_DONE)
        return status;
    progress_begin(&line, run->steps);
    return bench_run_go(run, &line);
}

static int run_calibrate(const tool_arguments *given)
{
    bench_run run;
    int status = bench_run_begin(&kind, given, &run);
    if (status == EXIT_DONE)
        status = run_all(&run);
    bench_run_finish(&run);
    return status;
}

const tool_command bench_calibrate_command = {
    .name = "bench calibrate",
    .summary = "what links and a rank's own work cost, by which plans are timed",
    .details = "Moves S(0) to S(1) and S(0) to R of 64 bytes to 64 MiB that each rank receives are repeated and "
               "checked; each time is the median "
               "of several loops of about 10 ms, of the slowest rank. The latency and bandwidth whose latency + "
               "bytes / bandwidth is nearest to the times, by the sum of squared relative errors, are what the "
               "engine's links cost. Inside a node "
               "bytes are those into a rank; where processes are on several nodes, the ranks of the fullest tell what "
               "is inside, and all of them "
               "what is between, by the bytes into the busiest node. Links that are not measured are those of "
               "--profile, else the default, but "
               "those between begin no earlier than those inside. Then moves that do one thing each, among the ranks "
               "of one node, tell what a "
               "plan, a "
               "box and a meeting cost, and rates of copies and sums by size and length of runs, for the profile's "
               "tables; and calls of ops on all ranks of one node at once tell what kernels cost: a call, passes over "
               "elements, products by "
               "rows, and attention by queries. Sizes that are not fitted tell the error. All takes some ten "
               "seconds where the machine is idle.\n\n"
               "--output is the profile's file, replaced at once or left as it was. Plans read a profile from the "
               "variable TSR_COST: "
               "TSR_COST=\"$(cat FILE)\". --ranks is 2 to 8 by the cores where it is not given. -b, -e and -f choose "
               "other sizes; --engine, "
               "--device, --mode, --ranks and --dtype may be repeated and be lists. --csv has a line for each point.",
    .examples =
        "  tessera bench calibrate --output links.cost\n"
        "  tessera bench calibrate --mode message --ranks 4 --profile cluster.cost --output cluster.cost --json\n"
        "  tessera bench calibrate --mode direct,message --ranks 2,4 -b 1K -e 16M -f 4 -n 11 --csv\n",
    .takes = TAKES(RANKS) | TAKES(DTYPE) | TAKES(BEGIN) | TAKES(END) | TAKES(FACTOR) | TAKES(ITERATIONS) |
             TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE) |
             TAKES(PROFILE) | TAKES(OUTPUT) | TAKES(JSON) | TAKES(CSV),
    .defaults = {{OPT_RANKS, "as many as cores, 2 to 8, or as were launched"},
                 {OPT_BEGIN, "sizes from 64 to 64M"},
                 {OPT_ITERATIONS, "5"},
                 {OPT_WARM_UP, "calls for 0.3 seconds"},
                 {OPT_PROFILE, "a built-in one"}},
    .repeats = TAKES(RANKS) | TAKES(DTYPE) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE),
    .output = "the file that gets the cost profile",
    .run = run_calibrate,
};
