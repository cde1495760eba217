/* Short texts that ask for huge plans: planning, loading and inspecting take bounded time and
 * memory, or are refused. */
#include "drill.h"
#include "meter.h"

#include <tessera/tessera.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 400, MOST_SECONDS = 20, MOST_MEMORY = 1024 * MEBIBYTE, LARGEST_POWER = 34 };

typedef struct demand {
    char mesh[TEXT], from[TEXT], to[TEXT];
    int ndim;
    int64_t shape[3], ranks;
    tsr_plan_options options;
} demand;

/* Draws from 1 to 2^power, with small and large numbers equally likely. */
static int64_t draw_size(drill_draws *draws, int64_t power)
{
    const int64_t end = INT64_C(1) << drill_below(draws, power + 1);
    return drill_one_in(draws, 2) ? end : 1 + drill_below(draws, end);
}

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void append(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, TEXT - used, format, arguments);
    va_end(arguments);
}

static void draw_placement(drill_draws *draws, const demand *x, char *text)
{
    const int64_t kind = drill_below(draws, 8);
    if (kind == 0) {
        append(text, "R");
    } else if (kind == 1) {
        append(text, "P");
    } else {
        append(text, "S(%d", (int)drill_below(draws, x->ndim));
        if (drill_one_in(draws, 3))
            append(text, ";balanced");
        if (drill_one_in(draws, 2))
            append(text, ";interleave=%lld", (long long)draw_size(draws, LARGEST_POWER));
        if (drill_one_in(draws, 4))
            append(text, ";unit=%lld", (long long)draw_size(draws, LARGEST_POWER));
        append(text, ")");
    }
}

static void draw_demand(drill_draws *draws, demand *x)
{
    memset(x, 0, sizeof *x);
    x->options = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    x->ndim = 1 + (int)drill_below(draws, 3);
    for (int d = 0; d < x->ndim; d++)
        x->shape[d] = draw_size(draws, x->ndim == 1 ? LARGEST_POWER : LARGEST_POWER / 2);
    const int mesh_dims = 1 + (int)drill_below(draws, 3);
    x->ranks = 1;
    for (int d = 0; d < mesh_dims; d++) {
        const int64_t size = draw_size(draws, 20 / mesh_dims);
        x->ranks *= size;
        append(x->mesh, d ? "x%lld" : "%lld", (long long)size);
        append(x->from, d ? "," : "");
        append(x->to, d ? "," : "");
        draw_placement(draws, x, x->from);
        draw_placement(draws, x, x->to);
    }
    x->options.mode = drill_one_in(draws, 2) ? TSR_MODE_DIRECT : TSR_MODE_MESSAGE;
    x->options.rank = drill_below(draws, x->ranks);
    x->options.nodes.ranks_per_node = drill_one_in(draws, 3) ? draw_size(draws, 20) : 0;
    x->options.max_workspace = drill_one_in(draws, 4) ? (size_t)draw_size(draws, 30) : 0;
}

static tsr_status count_transfer(const tsr_plan_transfer *transfer, void *user)
{
    *(int64_t *)user += transfer->bytes > 0;
    return TSR_OK;
}

/* Checks one call against the bounds. */
static bool ask(drill *d, const demand *x, const char *call, const meter *m, tsr_status status)
{
    const double seconds = meter_seconds(m);
    if (seconds > MOST_SECONDS || status == TSR_ERROR_MEMORY)
        drill_fail(d,
                   "%s: %.1f s, %zu MiB: %s to %s on %s, %lldx%lldx%lld (%d dims), rank %lld, mode %d, nodes of %lld, "
                   "workspace %zu",
                   call, seconds, meter_memory(m) / MEBIBYTE, x->from, x->to, x->mesh, (long long)x->shape[0],
                   (long long)x->shape[1], (long long)x->shape[2], x->ndim, (long long)x->options.rank, x->options.mode,
                   (long long)x->options.nodes.ranks_per_node, x->options.max_workspace);
    if (status != TSR_OK && !*tsr_status_message())
        drill_fail(d, "%s: %s without a sentence", call, tsr_status_name(status));
    return status == TSR_OK;
}

#define ASK(call) (meter_begin(m), ask(d, x, #call, m, call))

static void look_at(drill *d, const demand *x, meter *m, tsr_plan *plan)
{
    int64_t count = 0;
    tsr_plan_figures figures;
    ASK(tsr_plan_figures_of(plan, &figures));
    ASK(tsr_plan_visit_receives(plan, count_transfer, &count));
    ASK(tsr_plan_visit_sends(plan, count_transfer, &count));
}

static void try_demand(drill *d, const demand *x, meter *m, tsr_context *context)
{
    tsr_mesh *mesh = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL, *loaded = NULL;
    unsigned char bytes[4096];
    size_t size = 0, intervals = 0;
    const int64_t rank = x->options.rank;
    tsr_plan_options nobody = x->options;
    nobody.rank = TSR_RANK_NONE;
    if (ASK(tsr_mesh_parse(NULL, context, x->mesh, &mesh)) &&
        ASK(tsr_layout_parse(mesh, x->from, x->ndim, x->shape, TSR_F32, &src)) &&
        ASK(tsr_layout_parse(mesh, x->to, x->ndim, x->shape, TSR_F32, &dst))) {
        int64_t at[TSR_MAX_DIMS] = {0}, shape[TSR_MAX_DIMS];
        ASK(tsr_layout_local(src, at, shape, NULL));
        ASK(tsr_layout_intervals(src, at, 0, NULL, 0, &intervals));
        if (ASK(tsr_plan_create(src, dst, &x->options, &plan)))
            look_at(d, x, m, plan);
        tsr_plan_destroy(plan);
        plan = NULL;
        if (ASK(tsr_plan_create(src, dst, &nobody, &plan)) && tsr_plan_save(plan, bytes, sizeof bytes, &size) == TSR_OK)
            ASK(tsr_plan_load(context, bytes, size, rank, &loaded));
    }
    tsr_plan_destroy(plan);
    tsr_plan_destroy(loaded);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    tsr_mesh_destroy(mesh);
}

int main(int argc, char **argv)
{
    const drill_about about = {
        "planning", "no layouts, however short their text, take unbounded time or memory to plan", 1000, 300};
    drill *d = drill_begin(argc, argv, &about);
    meter m = {.bound = MOST_MEMORY};
    tsr_context *context = NULL;
    int64_t index;
    demand x;
    if (meter_context(&m, &context) != TSR_OK)
        return 1;
    while (drill_next(d, &index)) {
        drill_draws draws = drill_draws_of(drill_seed(d), (uint64_t)index);
        const size_t used = m.used;
        draw_demand(&draws, &x);
        try_demand(d, &x, &m, context);
        if (m.used != used)
            drill_fail(d, "%zu bytes are left", m.used - used);
    }
    tsr_context_destroy(context);
    return drill_end(d);
}
