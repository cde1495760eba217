#include "options.h"

#include "model.h"
#include "numbers.h"

#include <tessera/mesh.h>
#include <tessera/sys/status.h>

#include <argp.h>
#include <stdio.h>
#include <string.h>

/* Upper bounds of numbers on the command line. */
enum { MOST_RANKS = 4096, MOST_MICRO_BATCHES = 1 << 20, MOST_ROWS = 1 << 20, MOST_STEPS = 1 << 30 };

enum { STAGES = 256, LAYERS, MICRO_BATCHES, ROWS, STEPS, RATE, SEED, PLAIN, MESSAGES, TRACE, SCHEDULE };

static const struct argp_option known[] = {
    {"stages", STAGES, "MESH/..", 0,
     "the mesh of each stage: 1, dp=2, tp=2 or dp=2,tp=2, on the ranks behind those of the stage before, or from "
     "rank N on, as in tp=2@N (default 1/1)",
     0},
    {"layers", LAYERS, "N", 0, "layers of the model, at least one a stage (default 4)", 0},
    {"micro-batches", MICRO_BATCHES, "N", 0, "micro-batches of a step (default 8)", 0},
    {"rows", ROWS, "N", 0, "rows of a micro-batch (default 32)", 0},
    {"steps", STEPS, "N", 0, "steps to train (default 10)", 0},
    {"rate", RATE, "R", 0, "the learning rate of AdamW (default 0.003)", 0},
    {"seed", SEED, "N", 0, "of weights and rows (default 1)", 0},
    {"plain", PLAIN, NULL, 0,
     "finish each move before the next turn: plain 1F1B, with half the warm-up, in which no move travels while stages "
     "compute",
     0},
    {"messages", MESSAGES, NULL, 0,
     "send activations and gradients in messages, as between nodes, also where ranks read each other's memory", 0},
    {"trace", TRACE, NULL, 0, "say on standard error what each rank does; of processes rank 0 speaks alone", 0},
    {"schedule", SCHEDULE, NULL, 0, "print the turns of a step, and train nothing", 0},
    {0},
};

/* Refuses a mesh whose dims do not say what they cut. */
static void check_dims(struct argp_state *state, const char *text, const tsr_mesh *mesh)
{
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        const char *const name = tsr_mesh_name(mesh, dim);
        if (name ? strcmp(name, "dp") != 0 && strcmp(name, "tp") != 0 : tsr_mesh_count(mesh) > 1)
            argp_error(state, "--stages: mesh \"%s\": the dims of a stage are called dp and tp, as in dp=2,tp=2", text);
    }
}

/* Adds a stage. Its ranks are those behind `ranks` unless its text says which. */
static void add_stage(struct argp_state *state, options *o, tsr_context *context, const char *text)
{
    schedule *const s = &o->pipeline.schedule;
    char *const own = o->pipeline.meshes[s->stages];
    tsr_mesh *mesh;
    if (s->stages == MOST_STAGES)
        argp_error(state, "--stages: there are more than %d", MOST_STAGES);
    const bool says = strchr(text, '@') != NULL;
    const int length = snprintf(own, MESH_BYTES, says ? "%s" : "%s@%d", text, o->ranks);
    if (length >= MESH_BYTES)
        argp_error(state, "--stages: the text of a mesh is longer than %d characters", MESH_BYTES - 1);
    if (tsr_mesh_parse(NULL, context, own, &mesh) != TSR_OK)
        argp_error(state, "--stages: %s", tsr_status_message());
    check_dims(state, text, mesh);
    for (int64_t rank = 0, left = tsr_mesh_count(mesh); left > 0; rank++) {
        int64_t coordinate[TSR_MAX_DIMS];
        int inside;
        if (tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside) != TSR_OK || rank == MOST_RANKS)
            argp_error(state, "--stages: mesh \"%s\" has ranks beyond %d", text, MOST_RANKS - 1);
        left -= inside;
        if (left == 0 && rank + 1 > o->ranks)
            o->ranks = (int)rank + 1;
    }
    tsr_mesh_destroy(mesh);
    s->stages++;
}

static void read_stages(struct argp_state *state, options *o, const char *text)
{
    char one[MESH_BYTES];
    tsr_context *context;
    if (tsr_context_create(NULL, &context) != TSR_OK)
        argp_failure(state, 1, 0, "%s", tsr_status_message());
    o->ranks = o->pipeline.schedule.stages = 0;
    for (const char *at = text; at; at = strchr(at, '/') ? strchr(at, '/') + 1 : NULL) {
        const size_t length = strcspn(at, "/");
        if (length >= sizeof one)
            argp_error(state, "--stages: the text of a mesh is longer than %d characters", MESH_BYTES - 1);
        snprintf(one, sizeof one, "%.*s", (int)length, at);
        add_stage(state, o, context, one);
    }
    tsr_context_destroy(context);
}

static void check(struct argp_state *state, const options *o)
{
    if (o->pipeline.layers < o->pipeline.schedule.stages)
        argp_error(state, "--layers %lld: there are %d stages, and each has at least one layer",
                   (long long)o->pipeline.layers, o->pipeline.schedule.stages);
}

static error_t take(int key, char *text, struct argp_state *state)
{
    options *const o = state->input;
    pipeline_options *const p = &o->pipeline;
    switch (key) {
    case STAGES:
        read_stages(state, o, text);
        return 0;
    case LAYERS:
        p->layers = example_whole(state, "layers", text, 1, MOST_LAYERS);
        return 0;
    case MICRO_BATCHES:
        p->schedule.micro_batches = example_whole(state, "micro-batches", text, 1, MOST_MICRO_BATCHES);
        return 0;
    case ROWS:
        p->rows = example_whole(state, "rows", text, 1, MOST_ROWS);
        return 0;
    case STEPS:
        p->steps = example_whole(state, "steps", text, 0, MOST_STEPS);
        return 0;
    case RATE:
        p->rate = example_number(state, "rate", text, 1000);
        return 0;
    case SEED:
        p->seed = (uint64_t)example_whole(state, "seed", text, 0, INT64_MAX);
        return 0;
    case PLAIN:
        p->schedule.travels = false;
        return 0;
    case MESSAGES:
        p->by_messages = true;
        return 0;
    case TRACE:
        p->traces = true;
        return 0;
    case SCHEDULE:
        o->shows = true;
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
        "Trains a model whose layers lie in stages, each on a mesh of its own.\v"
        "With one stage it trains on a single mesh, without a pipeline. Exit status: 0 done, 1 failed, 2 options that "
        "don't parse.\n"
        "\n"
        "Examples:\n"
        "  tessera-example-pipeline\n"
        "  tessera-example-pipeline --stages 1/tp=2 --micro-batches 16\n"
        "  mpirun -n 4 tessera-example-pipeline --stages dp=2/dp=2\n"
        "  tessera-example-pipeline --schedule --micro-batches 4",
        NULL,
        NULL,
        NULL};
    *out = (options){.pipeline = {.schedule = {2, 8, true},
                                  .meshes = {"1@0", "1@1"},
                                  .layers = 4,
                                  .rows = 32,
                                  .steps = 10,
                                  .rate = 0.003,
                                  .seed = 1},
                     .ranks = 2};
    argp_err_exit_status = 2;
    (void)argp_parse(&parser, argc, argv, 0, NULL, out);
}
