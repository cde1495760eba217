#include "told.h"

#include "json.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>

/* The most ranks that are told one by one. */
#define MOST_RANKS 64

/* Finds what one rank of the layouts' mesh, which is abstract, takes. */
static tsr_status find_rank(const train_plan *plan, const train_layouts *layouts, tsr_context *context, bool validates,
                            int64_t rank, train_memory *out)
{
    train_shapes shapes = {0};
    tsr_executable *programs[TRAIN_KINDS] = {NULL};
    tsr_compile_options options = TSR_COMPILE_OPTIONS_INIT;
    tsr_status status = TSR_OK;
    options.rank = rank;
    for (int i = 0; i < TRAIN_KINDS && status == TSR_OK; i++)
        if (i == TRAIN_VALIDATION ? validates : train_plan_runs(plan, (train_kind)i) > 0)
            status = train_plan_compile(plan, layouts, &shapes, context, (train_kind)i, &options, &programs[i]);
    if (status == TSR_OK)
        status = train_memory_find(programs, rank, out);
    for (int i = 0; i < TRAIN_KINDS; i++)
        tsr_executable_destroy(programs[i]);
    train_shapes_finish(&shapes);
    return status;
}

tsr_status train_tell(const train_plan *plan, tsr_context *context, bool validates, train_memory *most)
{
    train_layouts layouts;
    TSR_TRY(train_plan_lay(plan, NULL, context, &layouts));
    const int64_t count = tsr_mesh_count(layouts.mesh), told = count <= MOST_RANKS ? count : 1;
    tsr_status status = TSR_OK;
    *most = (train_memory){0};
    for (int64_t rank = 0; rank < told && status == TSR_OK; rank++) {
        train_memory one;
        status = find_rank(plan, &layouts, context, validates, rank, &one);
        if (status == TSR_OK && one.total > most->total)
            *most = one;
    }
    train_layouts_finish(&layouts);
    return status;
}

static tsr_status print_json(const train_memory *m)
{
    char *const text = llama_json_take_text(
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "parameters", (json_int_t)m->weights,
                  "optimizer_states", (json_int_t)m->optimizer, "gradients", (json_int_t)m->gradients, "gathered",
                  (json_int_t)m->gathered, "activations", (json_int_t)m->activations, "workspaces",
                  (json_int_t)m->workspaces, "batch", (json_int_t)m->batch, "programs", (json_int_t)m->programs,
                  "peak_bytes", (json_int_t)m->total),
        17);
    if (!text)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the JSON of what a rank takes");
    puts(text);
    free(text);
    return TSR_OK;
}

static void print_table(const train_plan *plan, const train_memory *m)
{
    const struct {
        const char *what;
        int64_t bytes;
    } rows[] = {{"parameters", m->weights},      {"optimizer's states", m->optimizer},
                {"gradients", m->gradients},     {"gathered weights", m->gathered},
                {"activations", m->activations}, {"workspaces", m->workspaces},
                {"batch and loss", m->batch},    {"the programs themselves", m->programs}};
    printf("On mesh %s a rank takes at most %.1f MiB:\n", plan->mesh, (double)m->total / (1 << 20));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].bytes >= (1 << 20) / 20)
            printf("%10.1f  %s\n", (double)rows[i].bytes / (1 << 20), rows[i].what);
}

tsr_status train_tell_memory(const train_plan *plan, bool validates, bool json)
{
    train_memory most = {0};
    tsr_context *context;
    TSR_TRY(tsr_context_create(NULL, &context));
    tsr_status status = train_tell(plan, context, validates, &most);
    tsr_context_destroy(context);
    TSR_TRY(status);
    if (json)
        return print_json(&most);
    print_table(plan, &most);
    return TSR_OK;
}
