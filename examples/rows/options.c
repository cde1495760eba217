#include "options.h"

#include "numbers.h"

#include <argp.h>

/* Upper bounds of numbers on the command line. */
enum { MOST_RANKS = 4096, MOST_NODES = 1 << 30, MOST_DEGREE = 1 << 20, MOST_EPOCHS = 1 << 30 };

enum { RANKS = 256, NODES, COMMUNITIES, DEGREE, NOISE, EPOCHS, SEED, RATE, SAVE, LOAD };

static const struct argp_option known[] = {
    {"ranks", RANKS, "N", 0, "rank threads (default: one for each processor); under mpirun its number", 0},
    {"nodes", NODES, "N", 0, "nodes of the graph (default 100000)", 0},
    {"communities", COMMUNITIES, "N", 0, "blocks of nodes, which are the classes (default 10)", 0},
    {"degree", DEGREE, "N", 0, "neighbours of a node (default 10)", 0},
    {"noise", NOISE, "PART", 0, "the part of edges that lead to any node, 0 to 1 (default 0.2)", 0},
    {"epochs", EPOCHS, "N", 0, "epochs to train in all (default 5)", 0},
    {"seed", SEED, "N", 0, "of the graph, the first rows and weights, and the order (default 1)", 0},
    {"rate", RATE, "R", 0, "the learning rate of Adagrad (default 0.05)", 0},
    {"save", SAVE, "FILE", 0, "write a checkpoint at the end: safetensors", 0},
    {"load", LOAD, "FILE", 0, "go on from a checkpoint, of any number of ranks", 0},
    {0},
};

static void check(struct argp_state *state, const options *o)
{
    const graph *const g = &o->training.graph;
    if (g->communities > g->nodes)
        argp_error(state, "--communities %lld: there are %lld nodes", (long long)g->communities, (long long)g->nodes);
}

static error_t take(int key, char *text, struct argp_state *state)
{
    options *const o = state->input;
    graph *const g = &o->training.graph;
    switch (key) {
    case RANKS:
        o->ranks = (int)example_whole(state, "ranks", text, 1, MOST_RANKS);
        return 0;
    case NODES:
        g->nodes = example_whole(state, "nodes", text, 1, MOST_NODES);
        return 0;
    case COMMUNITIES:
        g->communities = example_whole(state, "communities", text, 1, MOST_NODES);
        return 0;
    case DEGREE:
        g->degree = example_whole(state, "degree", text, 1, MOST_DEGREE);
        return 0;
    case NOISE:
        g->noise = example_number(state, "noise", text, 1);
        return 0;
    case EPOCHS:
        o->training.epochs = example_whole(state, "epochs", text, 0, MOST_EPOCHS);
        return 0;
    case SEED:
        o->training.seed = g->seed = (uint64_t)example_whole(state, "seed", text, 0, INT64_MAX);
        return 0;
    case RATE:
        o->training.rate = example_number(state, "rate", text, 1000);
        return 0;
    case SAVE:
        o->training.save = text;
        return 0;
    case LOAD:
        o->training.load = text;
        return 0;
    case ARGP_KEY_END:
        check(state, o);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void options_parse(int argc, char **argv, options *out)
{
    static const struct argp parser = {
        known,
        take,
        NULL,
        "Learns the communities of a graph's nodes, with a table of learned rows that ranks share.\v"
        "Prints the same lines on any number of ranks. Exit status: 0 done, 1 failed, 2 options that don't parse.\n"
        "\n"
        "Examples:\n"
        "  tessera-example-rows --ranks 2\n"
        "  mpirun -n 3 tessera-example-rows --epochs 3 --save rows.safetensors\n"
        "  tessera-example-rows --load rows.safetensors",
        NULL,
        NULL,
        NULL};
    *out = (options){.training = {.graph = {100000, 10, 10, 0.2, 1}, .epochs = 5, .seed = 1, .rate = 0.05}};
    argp_err_exit_status = 2;
    (void)argp_parse(&parser, argc, argv, 0, NULL, out);
}
