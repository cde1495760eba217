/* The benchmarks by which the library judges itself, in one run: moves, small moves, layers and plans. */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_RANKS 2
#define WORDS       48

/** A benchmark and its options; MESH stands for the ranks that were asked for. */
typedef struct item {
    const tool_command *command;
    const char *words;   /**< parted by spaces */
    const char *sizes;   /**< likewise: of the whole suite, */
    const char *smaller; /**< and with --quick */
} item;

#define MOVES "--from S(0) --to S(1) --from S(1) --to S(0) --from S(0) --to R --from P --to S(0) --from P --to R --mesh MESH"

static const item items[] = {
    {&bench_redistribute_command, MOVES " --mode direct,message", "--shape 8192x8192 --iterations 11", "--shape 256x256 --iterations 5"},
    {&bench_redistribute_command, MOVES " --dtype bf16", "--shape 8192x16384 --iterations 11", "--shape 256x512 --iterations 5"},
    {&bench_dispatch_command, MOVES, "--shape 16x1,64x16,64x64,512x512", "--shape 4x4"},
#ifdef TESSERA_TOOL_BLAS
    {&bench_linear_command, "--mesh MESH --dtype f32", "--tokens 8 --hidden 128 --intermediate 512",
     "--tokens 8 --hidden 128 --intermediate 512"},
    {&bench_linear_command, "--mesh MESH --dtype f32", "--tokens 1024 --hidden 2048 --intermediate 8192 --iterations 5",
     "--tokens 64 --hidden 128 --intermediate 512 --iterations 5"},
#endif
    {&bench_plan_command, "--mesh 128x64x128 --shape 1024x1024x1024x1024 --from S(0),S(1),S(2) --to S(1),S(2),S(0)", "--iterations 101",
     "--iterations 5"},
    {&bench_plan_command, "--mesh 1024x32x32 --shape 1024x1024x1024x1024 --from S(0),S(1),S(2) --to S(3),S(1),S(2)", "--iterations 101",
     "--iterations 5"},
};

/** Splits words at spaces, in place; a word MESH becomes `mesh`. */
static int split(char *text, char *mesh, char **words, int count)
{
    char *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word != NULL && count < WORDS; word = strtok_r(NULL, " ", &rest))
        words[count++] = strcmp(word, "MESH") == 0 ? mesh : word;
    return count;
}

/** What is passed on to every item that takes it. */
static int add_option(const item *which, const tool_arguments *given, tool_option option, const char *name, char **words, int count)
{
    if (given->value[option] == NULL || (which->command->takes & UINT64_C(1) << option) == 0)
        return count;
    words[count++] = (char *)name;
    if (given->value[option][0] != '\0')
        words[count++] = (char *)given->value[option];
    return count;
}

static int run_item(const item *which, const tool_arguments *given, char *mesh)
{
    char *words[WORDS + 8] = {(char *)"tessera"};
    tool_arguments arguments;
    bool help;
    char *const own = strdup(which->words);
    char *const sizes = strdup(given->value[OPT_QUICK] != NULL ? which->smaller : which->sizes);
    int status = own != NULL && sizes != NULL ? EXIT_DONE : complain(EXIT_REFUSED, "there is no memory for the options of a benchmark");
    if (status == EXIT_DONE) {
        int count = split(own, mesh, words, 1);
        count = split(sizes, mesh, words, count);
        count = add_option(which, given, OPT_JSON, "--json", words, count);
        count = add_option(which, given, OPT_ENGINE, "--engine", words, count);
        count = add_option(which, given, OPT_DEVICE, "--device", words, count);
        status = options_read(which->command, count, words, &arguments, &help);
    }
    if (status == EXIT_DONE)
        status = which->command->run(&arguments);
    free(own);
    free(sizes);
    return status;
}

/** Whether there is a place for so many ranks: what no benchmark could do is refused once. */
static int check_place(const tool_arguments *given, const char *mesh_text)
{
    place *p = NULL;
    tsr_mesh *mesh = NULL;
    int ranks, status = place_open(given, &p);
    if (status == EXIT_DONE)
        status = parse_mesh(mesh_text, &mesh);
    if (status == EXIT_DONE)
        status = place_count_ranks(p, mesh, &ranks);
    tsr_mesh_destroy(mesh);
    place_close(p);
    return status;
}

/** What fails does not keep the others from running; its status is the suite's. */
static int run_suite(const tool_arguments *given)
{
    int64_t ranks;
    char mesh[24];
    int status = parse_count("--ranks", given->value[OPT_RANKS], LEAST_RANKS, &ranks);
    if (status != EXIT_DONE)
        return status;
    snprintf(mesh, sizeof mesh, "%lld", (long long)ranks);
    status = check_place(given, mesh);
    if (status != EXIT_DONE)
        return status;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        const int one = run_item(&items[i], given, mesh);
        status = status == EXIT_DONE ? one : status;
    }
    return status;
}

const tool_command bench_suite_command = {
    .name = "bench suite",
    .summary = "the benchmarks by which the library judges itself",
    .details =
        "Runs bench redistribute, dispatch, linear and plan one after the other: the moves between S(0), S(1), R and P of 256 MiB in both "
        "modes and in bf16, the same moves of 64 bytes to 1 MiB as calls that are repeated, a small and a large MLP, and plans on 2^20 "
        "ranks. With --json an object on each line, as those benchmarks print it, for bench compare. --quick takes small sizes, which say "
        "little but take seconds. What fails does not keep the others from running. A machine has to have room for some 2 GiB.",
    .examples = "  tessera bench suite --json > today.json\n"
                "  tessera bench suite --quick --ranks 4\n",
    .takes = TAKES(RANKS) | TAKES(QUICK) | TAKES(ENGINE) | TAKES(DEVICE) | TAKES(JSON),
    .run = run_suite,
};
