#include "program/count.h"

#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

void memory_parts(const tsr_executable_memory *m, memory_part parts[MEMORY_PARTS])
{
    const memory_part all[MEMORY_PARTS] = {{"parameters", "parameters", m->parameters},
                                           {"optimizer_states", "optimizer's states", m->optimizer_states},
                                           {"inputs", "inputs", m->inputs},
                                           {"outputs", "outputs", m->outputs},
                                           {"gathered", "gathered", m->gathered},
                                           {"activations", "activations", m->activations},
                                           {"gradients", "gradients", m->gradients},
                                           {"workspaces", "workspaces", m->scratch},
                                           {"gaps", "gaps", m->gaps}};
    memcpy(parts, all, sizeof all);
}

bool is_move(const tsr_executable_step *step)
{
    return strcmp(step->op, "move") == 0;
}

/* Copies into outputs: a rank may have none where another has one. */
static bool is_copy(const tsr_executable_step *step)
{
    return strcmp(step->op, "copy") == 0;
}

/* Makes room for the steps of the first rank. */
static tsr_status make_steps(program_count *c, const tsr_executable *x)
{
    c->steps = calloc(tsr_executable_step_count(x) + 1, sizeof *c->steps);
    if (!c->steps)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the program's steps");
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        TSR_TRY(tsr_executable_step_at(x, i, &step));
        if (!is_copy(&step))
            c->steps[c->count++].what = step;
        /* What a store leaves is called by the state's name. */
        if (strcmp(step.op, "store") == 0)
            tsr_value_set_label(c->request->program, step.results[0],
                                tsr_value_label(c->request->program, step.operands[0]));
    }
    return TSR_OK;
}

static void add_sum(tsr_plan_sum *sum, int64_t bytes)
{
    sum->total += bytes;
    sum->max = bytes > sum->max ? bytes : sum->max;
}

/* Adds what one rank's part costs. */
static tsr_status add_rank(program_count *c, const tsr_executable *x)
{
    tsr_executable_figures f;
    size_t at = 0;
    TSR_TRY(tsr_executable_figures_of(x, &f));
    add_sum(&c->bytes, f.bytes_received);
    if (!c->first || (int64_t)f.peak_bytes > c->peak_bytes) {
        c->peak_bytes = (int64_t)f.peak_bytes;
        TSR_TRY(tsr_executable_memory_of(x, &c->memory));
    }
    c->seconds = f.seconds > c->seconds ? f.seconds : c->seconds;
    c->flops = f.flops > c->flops ? f.flops : c->flops;
    for (size_t i = 0; i < tsr_executable_step_count(x); i++) {
        tsr_executable_step step;
        TSR_TRY(tsr_executable_step_at(x, i, &step));
        if (is_copy(&step) || at == c->count)
            continue;
        program_step *const sum = &c->steps[at++];
        add_sum(&sum->bytes, step.bytes_received);
        sum->seconds = step.seconds > sum->seconds ? step.seconds : sum->seconds;
    }
    return TSR_OK;
}

/* An output without a label is called by its name. */
static void label_outputs(const program_count *c)
{
    for (size_t i = 0; i < tsr_executable_output_count(c->first); i++)
        tsr_value_set_label(c->request->program, tsr_executable_output_value(c->first, i),
                            tsr_executable_output_name(c->first, i));
}

static tsr_status count_rank(program_count *c, int64_t rank)
{
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_executable *x;
    options.rank = rank;
    TSR_TRY(tsr_compile(c->request->program, &options, &x));
    tsr_status status = c->first ? TSR_OK : make_steps(c, x);
    if (status == TSR_OK)
        status = add_rank(c, x);
    if (c->first)
        tsr_executable_destroy(x);
    else {
        c->first = x;
        label_outputs(c);
    }
    return status;
}

static tsr_status count_ranks(program_count *c)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, rank;
    const tsr_mesh *const mesh = c->request->mesh;
    if (c->request->one_rank)
        return count_rank(c, c->request->rank);
    do {
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &rank));
        TSR_TRY(count_rank(c, rank));
    } while (c->has_totals && next_coordinate(mesh, coordinate));
    return TSR_OK;
}

int program_count_make(const program_request *r, program_count *out)
{
    *out = (program_count){.request = r, .has_totals = r->one_rank || tsr_mesh_count(r->mesh) <= MOST_COUNTED_RANKS};
    return count_ranks(out) == TSR_OK ? EXIT_DONE : complain(EXIT_REFUSED, "%s: %s", r->path, tsr_status_message());
}

void program_count_finish(program_count *c)
{
    tsr_executable_destroy(c->first);
    free(c->steps);
}
