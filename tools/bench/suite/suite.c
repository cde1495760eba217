/* bench suite: the benchmarks by which the library judges itself, in one run: moves, small moves,
 * layers and plans. */
#include "bench/run/run.h"
#include "place/engines.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_RANKS 2
#define WORDS       64

/* A benchmark and its options; in these MESH stands for --ranks, MODES for the modes that the
 * engine has. */
typedef struct item {
    const tool_command *command;
    const bench_kind *kind;
    const char *words;      /* options, separated by spaces */
    const char *sizes;      /* options for sizes, separated by spaces, without --quick */
    const char *smaller;    /* options for sizes, separated by spaces, with --quick */
    const char *iterations; /* --iterations without that option and --quick; NULL: the benchmark's default */
} item;

#define QUICK_ITERATIONS "5"

#define MOVES                                                                                                          \
    "--from S(0) --to S(1) --from S(1) --to S(0) --from S(0) --to R --from P --to S(0) --from P --to R --mesh MESH"

static const item items[] = {
    {&bench_redistribute_command, &bench_redistribute_kind, MOVES " --mode MODES", "--shape 8192x8192",
     "--shape 256x256", NULL},
    {&bench_redistribute_command, &bench_redistribute_kind, MOVES " --dtype bf16", "--shape 8192x16384",
     "--shape 256x512", NULL},
    {&bench_dispatch_command, &bench_dispatch_kind, MOVES, "--shape 16x1,64x16,64x64,512x512", "--shape 4x4", NULL},
#ifdef TESSERA_TOOL_BLAS
    {&bench_linear_command, &bench_linear_kind, "--mesh MESH --dtype f32", "--tokens 8 --hidden 128 --intermediate 512",
     "--tokens 8 --hidden 128 --intermediate 512", NULL},
    {&bench_linear_command, &bench_linear_kind, "--mesh MESH --dtype f32",
     "--tokens 1024 --hidden 2048 --intermediate 8192", "--tokens 64 --hidden 128 --intermediate 512", "5"},
#endif
    {&bench_plan_command, &bench_plan_kind,
     "--shape 1024x1024x1024x1024 --mesh 128x64x128 --from S(0),S(1),S(2) --to S(1),S(2),S(0)", "", "", "101"},
    {&bench_plan_command, &bench_plan_kind,
     "--shape 1024x1024x1024x1024 --mesh 1024x32x32 --from S(0),S(1),S(2) --to S(3),S(1),S(2)", "", "", "101"},
};

#define ITEMS (sizeof items / sizeof *items)

/* An item that is ready to run. */
typedef struct ready {
    char *words, *sizes; /* copies of the item's options; `arguments` points into them */
    tool_arguments arguments;
    bench_run run;
} ready;

/* The values of the words MESH and MODES. */
typedef struct stand_ins {
    char mesh[24];
    const char *modes;
} stand_ins;

/* Splits a text at spaces, in place, and adds its words, with MESH and MODES replaced. Returns the
 * number of words. */
static int split(char *text, const stand_ins *given, char **words, int count)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word && count < WORDS; word = strtok_r(NULL, " ", &rest)) {
        const char *const meant = strcmp(word, "MESH") == 0    ? given->mesh
                                  : strcmp(word, "MODES") == 0 ? given->modes
                                                               : word;
        words[count++] = (char *)meant;
    }
    return count;
}

/* Options of the suite that are passed on to every benchmark that takes them. */
static const struct {
    tool_option option;
    const char *name;
} passed_on[] = {
    {OPT_JSON, "--json"},       {OPT_CSV, "--csv"},     {OPT_ENGINE, "--engine"},        {OPT_DEVICE, "--device"},
    {OPT_WARM_UP, "--warm-up"}, {OPT_CHECK, "--check"}, {OPT_ITERATIONS, "--iterations"}};

static int add_passed_on(const item *which, const tool_arguments *given, char **words, int count)
{
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++) {
        const tool_option option = passed_on[i].option;
        const char *const value = given->value[option];
        if (!value || (which->command->takes & UINT64_C(1) << option) == 0)
            continue;
        words[count++] = (char *)passed_on[i].name;
        if (option != OPT_JSON && option != OPT_CSV)
            words[count++] = (char *)value;
    }
    return count;
}

static int add_iterations(const item *which, const tool_arguments *given, char **words, int count)
{
    const char *const wanted = given->value[OPT_QUICK] ? QUICK_ITERATIONS : which->iterations;
    if (given->value[OPT_ITERATIONS] || !wanted)
        return count;
    words[count++] = (char *)"--iterations";
    words[count++] = (char *)wanted;
    return count;
}

static int make_ready(const item *which, const tool_arguments *given, const stand_ins *instead, ready *out)
{
    char *words[WORDS + 2 * sizeof passed_on / sizeof *passed_on + 2] = {(char *)"tessera"};
    bool help;
    out->words = strdup(which->words);
    out->sizes = strdup(given->value[OPT_QUICK] ? which->smaller : which->sizes);
    if (!out->words || !out->sizes)
        return complain(EXIT_REFUSED, "there is no memory for the options of a benchmark");
    int count = split(out->words, instead, words, 1);
    count = split(out->sizes, instead, words, count);
    count = add_passed_on(which, given, words, count);
    count = add_iterations(which, given, words, count);
    const int status = options_read(which->command, count, words, &out->arguments, &help);
    return status == EXIT_DONE ? bench_run_begin(which->kind, &out->arguments, &out->run) : status;
}

static void finish_all(ready *all)
{
    for (size_t i = 0; i < ITEMS; i++) {
        bench_run_finish(&all[i].run);
        free(all[i].words);
        free(all[i].sizes);
    }
}

/* Runs all benchmarks, also after a failure; returns the status of the first that failed. CSV has
 * one line of names for benchmarks of one kind in sequence. */
static int run_all(ready *all)
{
    progress line;
    int64_t steps = 0;
    int status = EXIT_DONE;
    for (size_t i = 0; i < ITEMS; i++)
        steps += all[i].run.steps;
    progress_begin(&line, steps);
    for (size_t i = 0; i < ITEMS; i++) {
        all[i].run.rows = i > 0 && items[i].kind == items[i - 1].kind ? all[i - 1].run.rows : 0;
        const int one = bench_run_go(&all[i].run, &line);
        status = status == EXIT_DONE ? one : status;
    }
    return status;
}

/* Refuses, once instead of for each benchmark, an engine, device or number of ranks that this
 * machine cannot run. */
static int check_place(const tool_arguments *given, const char *mesh_text)
{
    place *p = NULL;
    tsr_mesh *mesh = NULL;
    int ranks, status = place_open(given, &p);
    if (status == EXIT_DONE)
        status = parse_mesh_in(NULL, "--ranks", mesh_text, &mesh);
    if (status == EXIT_DONE)
        status = place_count_ranks(p, mesh, NULL, &ranks);
    tsr_mesh_destroy(mesh);
    place_close(p);
    return status;
}

static int run_items(const tool_arguments *given, const stand_ins *instead)
{
    ready *const all = calloc(ITEMS, sizeof *all);
    int status = all ? EXIT_DONE : complain(EXIT_REFUSED, "there is no memory for %zu benchmarks", ITEMS);
    if (!all)
        return status;
    for (size_t i = 0; i < ITEMS && status == EXIT_DONE; i++)
        status = make_ready(&items[i], given, instead, &all[i]);
    if (status == EXIT_DONE)
        status = run_all(all);
    finish_all(all);
    free(all);
    return status;
}

/* The modes of the engine: some engines have messages alone. */
static const char *modes_of(const tool_arguments *given)
{
    const engine *const e = given->value[OPT_ENGINE] ? engine_find(given->value[OPT_ENGINE]) : NULL;
    return e && e->sends ? "message" : "direct,message";
}

static int run_suite(const tool_arguments *given)
{
    int64_t ranks;
    stand_ins instead = {.modes = modes_of(given)};
    int status = parse_count("--ranks", given->value[OPT_RANKS], LEAST_RANKS, &ranks);
    if (status != EXIT_DONE)
        return status;
    snprintf(instead.mesh, sizeof instead.mesh, "%lld", (long long)ranks);
    status = check_place(given, instead.mesh);
    return status == EXIT_DONE ? run_items(given, &instead) : status;
}

const tool_command bench_suite_command = {
    .name = "bench suite",
    .summary = "the benchmarks by which the library judges itself",
    .details = "Runs bench redistribute, dispatch, linear and plan one after the other: the moves between S(0), S(1), "
               "R and P of 256 MiB in both "
               "modes and in bf16, the same moves of 64 bytes to 1 MiB as calls that are repeated, a small and a large "
               "MLP, and plans on 2^20 "
               "ranks. With --json an object on each line, as those benchmarks print it, for bench compare; with --csv "
               "every kind of benchmark "
               "has "
               "its line of names. --iterations, --warm-up and --check are passed on to those that take them. --quick "
               "takes small sizes, which "
               "say "
               "little but take seconds. What fails does not keep the others from running. A machine has to have room "
               "for some 2 GiB.",
    .examples = "  tessera bench suite --json > today.json\n"
                "  tessera bench suite --quick --ranks 4\n",
    .takes = TAKES(RANKS) | TAKES(QUICK) | TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CHECK) | TAKES(ENGINE) |
             TAKES(DEVICE) | TAKES(JSON) | TAKES(CSV),
    .defaults = {{OPT_RANKS, "2"}, {OPT_ITERATIONS, "as its benchmarks have"}, {OPT_WARM_UP, "as its benchmarks have"}},
    .run = run_suite,
};
