/* bench kernels: how fast the host's kernels are in each of their ways, over lengths of runs and
 * sizes, and whether calls choose the best one. */
#include "bench/kernels/kernel_bench.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "cli/words.h"
#include "files/file.h"

#include <stdlib.h>

/* Sizes without --begin: one that caches may hold, and one that they cannot. */
static const size_range usual_sizes = {.begin = INT64_C(16) << 20, .end = INT64_C(128) << 20, .factor = 8};

/* Upper bound of --ranks: each rank has its own memory. */
#define MAX_KERNEL_RANKS 1024

/* A run and all rows that it printed, for the picture and the last line. */
typedef struct kernel_job {
    bench_run run; /* first member, so that measure() can cast its argument back */
    place *place;
    kernel_figures *rows; /* on the heap */
    size_t count;
} kernel_job;

static json_t *row_to_json(const kernel_job *j, const kernel_figures *f)
{
    return json_pack("{ss ss sI sI ss sf sf sb sf sI so sb ss sI sI}", "bench", "kernels", "kernel", f->request.kernel,
                     "run_bytes", (json_int_t)f->request.run_bytes, "bytes", (json_int_t)f->request.bytes, "variant",
                     f->way, "bandwidth", f->bandwidth, "of_peak", f->of_peak, "chosen", f->chosen, "of_best",
                     f->of_best, "ranks", (json_int_t)f->request.ranks, "seconds", spread_to_json(f->seconds),
                     "as_good", f->as_good, "peak_copy", f->peak_copy, "iterations",
                     (json_int_t)j->run.settings.iterations, "warm_ups", (json_int_t)j->run.settings.warm_ups);
}

static void print_columns(const kernel_figures *f)
{
    say("# %s, %d rank%s, f32\n", f->request.kernel, f->request.ranks, f->request.ranks == 1 ? "" : "s");
    say("#%9s %10s %14s %12s %9s %8s %8s %6s\n", "size", "run", "variant", "time", "bandwidth", "of_peak", "of_best",
        "noise");
    say("#%9s %10s %14s %12s %9s %8s %8s %6s\n", "(B)", "(B)", "", "(us)", "(GB/s)", "", "", "(%)");
}

static void print_figures(const kernel_figures *f)
{
    say(" %9lld %10lld %14s %12.2f %9.2f %8.3f %8.3f %6.1f%s\n", (long long)f->request.bytes,
        (long long)f->request.run_bytes, f->way, 1e6 * f->seconds.median, f->bandwidth / 1e9, f->of_peak, f->of_best,
        100 * spread_noise(f->seconds), f->chosen ? "  chosen" : "");
}

static int print_rows(kernel_job *j, const kernel_figures *rows, int count, bool begins_table)
{
    int status = EXIT_DONE;
    progress_clear(j->run.settings.progress);
    if (j->run.format == ROWS_TEXT && begins_table)
        print_columns(rows);
    for (int i = 0; i < count && status == EXIT_DONE; i++) {
        if (j->run.format != ROWS_TEXT)
            status = bench_run_print(&j->run, row_to_json(j, &rows[i]));
        else
            print_figures(&rows[i]);
    }
    return status;
}

static int measure_size(kernel_job *j, const kernel_request *request, bool begins_table)
{
    int count = 0;
    kernel_figures *const rows = realloc(j->rows, (j->count + TSR_MOST_KERNEL_WAYS) * sizeof *rows);
    if (!rows)
        return complain(EXIT_REFUSED, "there is no memory for %zu rows", j->count + TSR_MOST_KERNEL_WAYS);
    j->rows = rows;
    int status = kernel_bench_run(j->place, request, &j->run.settings, rows + j->count, &count);
    if (status == EXIT_DONE)
        status = print_rows(j, rows + j->count, count, begins_table);
    j->count += status == EXIT_DONE ? (size_t)count : 0;
    return status;
}

static const size_range *sizes_of(const bench_run *run)
{
    return run->sizes.begin > 0 ? &run->sizes : &usual_sizes;
}

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    kernel_job *const j = (kernel_job *)run;
    kernel_request request = {.kernel = now->value[OPT_KERNEL]};
    int64_t ranks = 1;
    int status = parse_count("--ranks", now->value[OPT_RANKS], 1, &ranks);
    if (status == EXIT_DONE)
        status = size_read("--run-bytes", now->value[OPT_RUN_BYTES], &request.run_bytes);
    if (status == EXIT_DONE && ranks > MAX_KERNEL_RANKS)
        status = complain(EXIT_REFUSED, "--ranks is %lld; %d are the most", (long long)ranks, MAX_KERNEL_RANKS);
    request.ranks = (int)ranks;
    for (request.bytes = sizes_of(run)->begin; request.bytes > 0 && status == EXIT_DONE;) {
        status = measure_size(j, &request, begins_table);
        begins_table = false;
        request.bytes = size_range_next(sizes_of(run), request.bytes);
    }
    return status;
}

static int count_steps(const bench_run *run, const tool_arguments *now, int64_t *out)
{
    (void)now;
    *out = size_range_count(sizes_of(run)) * (run->settings.warm_ups + run->settings.iterations);
    return EXIT_DONE;
}

static const tool_option axes[] = {OPT_RANKS, OPT_KERNEL, OPT_RUN_BYTES};

const bench_kind bench_kernels_kind = {.name = "bench kernels",
                                       .axes = axes,
                                       .axis_count = sizeof axes / sizeof *axes,
                                       .within = 1,
                                       .sizes = SIZES_OF_ITS_OWN,
                                       .settings = {.iterations = 9, .warm_ups = 1, .loop_seconds = 2e-4},
                                       .measure = measure,
                                       .steps = count_steps};

/* Prints the worst of the chosen ways whose times do not overlap those of the best way. */
static void print_least(const kernel_job *j)
{
    const kernel_figures *least = NULL;
    size_t chosen = 0;
    for (size_t i = 0; i < j->count; i++) {
        const kernel_figures *const f = &j->rows[i];
        chosen += f->chosen;
        if (f->chosen && !f->as_good && (!least || f->of_best < least->of_best))
            least = f;
    }
    if (!least)
        say("# chosen / best: %zu of %zu as good as the best, within what times spread over\n", chosen, chosen);
    else
        say("# chosen / best: %.3f at least: %s, size %lld, run %lld\n", least->of_best, least->request.kernel,
            (long long)least->request.bytes, (long long)least->request.run_bytes);
}

static int draw(const kernel_job *j, const char *path)
{
    tsr_new_file *picture = NULL;
    char *text;
    size_t bytes;
    kernel_plot(j->rows, j->count, &text, &bytes);
    if (!text)
        return complain(EXIT_REFUSED, "there is no memory for the picture");
    const int status = file_prepare("--svg", path, text, bytes, &picture);
    free(text);
    return status == EXIT_DONE ? file_publish("--svg", path, picture) : status;
}

/* Adds an option that was not given, with its default. */
static void add_usual(tool_arguments *given, tool_option option, const char *value)
{
    if (given->value[option] || given->given_count == MAX_GIVEN)
        return;
    given->value[option] = value;
    given->given[given->given_count].option = option;
    given->given[given->given_count++].value = value;
}

static int run_job(kernel_job *j, const tool_arguments *given)
{
    const char *const path = given->value[OPT_SVG];
    progress line;
    int status = bench_run_begin(&bench_kernels_kind, given, &j->run);
    if (status == EXIT_DONE && path)
        status = file_check_output("--svg", path);
    if (status == EXIT_DONE)
        status = place_open(given, &j->place);
    progress_begin(&line, j->run.steps);
    if (status == EXIT_DONE)
        status = bench_run_go(&j->run, &line);
    if (status == EXIT_DONE && j->run.format == ROWS_TEXT)
        print_least(j);
    if (status == EXIT_DONE && path)
        status = draw(j, path);
    return status;
}

static int run_bench(const tool_arguments *given)
{
    tool_arguments all = *given;
    kernel_job j = {.rows = NULL};
    add_usual(&all, OPT_KERNEL, "copy,reduce");
    add_usual(&all, OPT_RUN_BYTES, "1K,4K,16K,64K,1M,1T");
    add_usual(&all, OPT_RANKS, "1");
    const int status = run_job(&j, &all);
    bench_run_finish(&j.run);
    place_close(j.place);
    free(j.rows);
    return status;
}

const tool_command bench_kernels_command = {
    .name = "bench kernels",
    .summary = "how fast each way of moving bytes on the host is, and which one is chosen",
    .details = "Copies and reduces rows of f32 in each way that the host's kernels have, in turns, next to plain "
               "copies of as many bytes "
               "(memcpy or non-temporal stores, the best by its median), and says which way calls have chosen by "
               "themselves, after as many calls "
               "as that takes. reduce sums two sources into one destination, reduce-to-all into two. The rows of a "
               "source lie twice as far apart "
               "as they are long, those of a destination one after the other; what is longer than all bytes is one "
               "row. Every rank works on "
               "memory "
               "of its own, all at the same time; size is what a call of one rank writes, bandwidth what all ranks "
               "write together.\n\n"
               "Times are those of the slowest rank from barrier to barrier, medians. of_best is a way's rate over "
               "that of the best way in the "
               "same turns. Calls that write less than 8 MiB always go by ordinary stores, whichever way is asked for. "
               "TSR_KERNELS says how calls "
               "choose.\n\n"
               "-b, -e and -f step through sizes; 16M and 128M without them. --kernel, --run-bytes and --ranks may be "
               "repeated and be lists. "
               "--svg draws rates against the length of runs.",
    .examples = "  tessera bench kernels\n"
                "  tessera bench kernels --kernel copy --run-bytes 4K,16K -b 16M -e 256M -f 4 --ranks 2 --json\n"
                "  tessera bench kernels --svg kernels.svg --csv\n",
    .takes = TAKES(KERNEL) | TAKES(RUN_BYTES) | TAKES(RANKS) | TAKES(BEGIN) | TAKES(END) | TAKES(FACTOR) |
             TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) | TAKES(SVG) | TAKES(JSON) | TAKES(CSV),
    .repeats = TAKES(KERNEL) | TAKES(RUN_BYTES) | TAKES(RANKS),
    .defaults = {{OPT_RANKS, "1"}, {OPT_BEGIN, "the sizes 16M and 128M"}, {OPT_ITERATIONS, "9"}, {OPT_WARM_UP, "1"}},
    .run = run_bench,
};
