#include <tessera/sys/status.h>

#include "base/checked.h"
#include "base/memory.h"
#include "base/sort.h"
#include "mesh/geometry.h"
#include "redistribute/cost.h"
#include "redistribute/told.h"

/* Ranks go by ascending number, so that those of a node come one after the other. */
typedef struct survey {
    const tsr_plan *plan;
    const tsr_layout **src, **dst;
    int64_t *ranks;
    size_t rank_count, rank_capacity;
    int64_t ranks_per_node, node;               /* that is added up */
    double into_node;                           /* bytes from other nodes */
    tsr_load inside, between;                   /* of the busiest rank, and node */
    bool used[TSR_PHASES], crossed[TSR_PHASES]; /* by phase: links at all, and those between nodes */
    tsr_plan_survey out;
} survey;

static tsr_status add_mesh(survey *s, const tsr_mesh *mesh)
{
    const tsr_grid *grid = tsr_mesh_grid(mesh);
    void *memory = s->ranks;
    const tsr_status status =
        tsr_reserve(s->plan->context, &memory, &s->rank_capacity, s->rank_count + (size_t)grid->count, sizeof *s->ranks);
    s->ranks = memory;
    TSR_TRY(status);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do {
        s->ranks[s->rank_count++] = tsr_grid_rank(grid, coordinate);
    } while (tsr_grid_next(grid, coordinate));
    return TSR_OK;
}

static int by_rank(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void sort_ranks(survey *s)
{
    size_t kept = 0;
    tsr_sort(s->ranks, s->rank_count, sizeof *s->ranks, by_rank, NULL);
    for (size_t i = 0; i < s->rank_count; i++)
        if (kept == 0 || s->ranks[i] != s->ranks[kept - 1])
            s->ranks[kept++] = s->ranks[i];
    s->rank_count = kept;
}

/* The ranks of all meshes, each once, ascending. Moves mostly share their meshes, which are then listed once. */
static tsr_status list_ranks(survey *s)
{
    const tsr_mesh *listed[2] = {NULL, NULL};
    for (size_t i = 0; i < 2 * s->plan->count; i++) {
        const tsr_mesh *mesh = (i % 2 ? s->plan->items[i / 2].dst : s->plan->items[i / 2].src)->mesh;
        if (mesh == listed[0] || mesh == listed[1])
            continue;
        TSR_TRY(add_mesh(s, mesh));
        sort_ranks(s);
        listed[i % 2] = mesh;
    }
    return TSR_OK;
}

static tsr_status list_layouts(survey *s)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(s->plan->context, 2 * s->plan->count, sizeof *s->src, &memory));
    s->src = memory;
    s->dst = s->src + s->plan->count;
    for (size_t i = 0; i < s->plan->count; i++) {
        s->src[i] = s->plan->items[i].src;
        s->dst[i] = s->plan->items[i].dst;
    }
    return TSR_OK;
}

static tsr_status add(tsr_plan_sum *sum, int64_t bytes, const char *what)
{
    sum->max = tsr_max_i64(sum->max, bytes);
    if (tsr_add(sum->total, bytes, &sum->total))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_survey_of: all ranks together %s more than 2^63 - 1 bytes", what);
}

static tsr_status add_figures(tsr_plan_survey *out, const tsr_plan_figures *f)
{
    TSR_TRY(add(&out->bytes_received, f->bytes_received, "receive"));
    TSR_TRY(add(&out->bytes_sent, f->bytes_sent, "send"));
    TSR_TRY(add(&out->bytes_kept, f->bytes_kept, "keep"));
    out->messages_received = tsr_max_i64(out->messages_received, f->messages_received);
    out->messages_sent = tsr_max_i64(out->messages_sent, f->messages_sent);
    out->workspace_bytes = f->workspace_bytes > out->workspace_bytes ? f->workspace_bytes : out->workspace_bytes;
    out->gather_and_slice.max = tsr_max_i64(out->gather_and_slice.max, f->gather_and_slice);
    out->gather_and_slice.total = tsr_add_saturated(out->gather_and_slice.total, f->gather_and_slice);
    return TSR_OK;
}

/* What each rank has a bound of its own for; where a move has none, there is no largest one. */
static tsr_status add_bounds(survey *s, const tsr_plan *own)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < own->count; i++)
        if (tsr_bound_is_exact(&own->items[i]))
            bytes += tsr_bound_of_rank(&own->items[i]);
    return add(&s->out.lower_bound, bytes, "must receive");
}

static double greater(double a, double b)
{
    return a > b ? a : b;
}

static void end_node(survey *s)
{
    s->between.bytes = greater(s->between.bytes, s->into_node);
    s->into_node = 0;
}

static void add_links(survey *s, int64_t rank, const tsr_measure *m)
{
    const int64_t node = s->ranks_per_node > 0 ? rank / s->ranks_per_node : 0;
    if (node != s->node)
        end_node(s);
    s->node = node;
    double bytes = 0;
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        s->used[phase] |= m->received[phase] > 0;
        s->crossed[phase] |= m->crossing[phase] > 0;
        s->into_node += (double)m->crossing[phase];
        bytes += (double)m->received[phase];
    }
    s->inside.bytes = greater(s->inside.bytes, bytes);
}

static tsr_status add_rank(survey *s, int64_t rank)
{
    tsr_plan_options options = s->plan->options;
    options.rank = rank;
    options.profile = &s->plan->profile;
    tsr_plan *own = NULL;
    tsr_measure m;
    TSR_TRY(tsr_plan_create_batch(s->plan->count, s->src, s->dst, &options, &own));
    tsr_status status = tsr_measure_plan(own, &m);
    if (status == TSR_OK && m.figures.bytes_received > s->out.bytes_received.max)
        s->out.busiest_rank = rank;
    if (status == TSR_OK)
        status = add_figures(&s->out, &m.figures);
    if (status == TSR_OK)
        status = add_bounds(s, own);
    for (size_t i = 0; i < s->out.step_count && status == TSR_OK; i++) {
        s->out.steps[i].mesh_dims |= m.steps[i].mesh_dims;
        status = add(&s->out.steps[i].bytes_received, m.steps[i].bytes_received, "receive");
    }
    if (status == TSR_OK)
        add_links(s, rank, &m);
    tsr_plan_destroy(own);
    return status;
}

static tsr_status add_partial_bounds(survey *s)
{
    for (size_t i = 0; i < s->plan->count; i++) {
        if (tsr_bound_is_exact(&s->plan->items[i]))
            continue;
        s->out.lower_bound.max = -1;
        TSR_TRY(tsr_bound_add_total(&s->plan->items[i], &s->out.lower_bound.total));
    }
    return TSR_OK;
}

static tsr_status take(survey *s)
{
    const tsr_steps steps = tsr_steps_of(s->plan);
    s->out.step_count = steps.count;
    for (size_t i = 0; i < steps.count; i++)
        s->out.steps[i].op = steps.ops[i];
    s->ranks_per_node = tsr_told_ranks_per_node(s->plan);
    TSR_TRY(list_layouts(s));
    TSR_TRY(list_ranks(s));
    s->out.ranks = (int64_t)s->rank_count;
    s->out.busiest_rank = -1;
    for (size_t i = 0; i < s->rank_count; i++)
        TSR_TRY(add_rank(s, s->ranks[i]));
    end_node(s);
    TSR_TRY(add_partial_bounds(s));
    s->out.ratio = tsr_told_ratio(s->out.bytes_received.total, s->out.lower_bound.total);
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        s->inside.steps += s->used[phase];
        s->between.steps += s->crossed[phase];
    }
    s->out.seconds = tsr_cost_seconds(&s->plan->profile, s->inside, s->between);
    return TSR_OK;
}

tsr_status tsr_plan_survey_of(const tsr_plan *plan, tsr_plan_survey *out)
{
    if (!plan || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_survey_of: %s is NULL", !plan ? "plan" : "out");
    survey s = {.plan = plan};
    const tsr_status status = take(&s);
    if (status == TSR_OK)
        *out = s.out;
    tsr_release(plan->context, s.ranks);
    tsr_release(plan->context, s.src);
    return status;
}
