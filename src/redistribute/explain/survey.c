#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "redistribute/explain/bound.h"
#include "redistribute/explain/figures.h"
#include "redistribute/explain/steps.h"
#include "redistribute/match/cost.h"
#include "redistribute/schedule/ranks.h"
#include "redistribute/schedule/work.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

#include <limits.h>

/* A survey may take as many entries as this many plans. */
#define PLANS 16

/* Making a plan, however small, takes as long as this many entries. */
#define ENTRIES_OF_RANK 32

/* How many ranks are planned for first: if each of them takes more than its part of the bound, all
 * ranks together would. They are spread by the golden ratio, because a layout may have put its busy
 * ranks in a regular order. */
#define SAMPLES 8
#define GOLDEN  0.6180339887498949

/* A survey under way. `ranks` are sorted by node, and within each node ascending. */
typedef struct survey {
    const tsr_plan *plan;
    const char *function;
    const int64_t *only; /* the ranks that are asked about; NULL: all */
    size_t only_count;
    const tsr_layout **src, **dst;
    int *ranks;
    int rank_count;
    tsr_meter meter;
    const tsr_node_map *nodes;                  /* NULL: no item takes nodes into account */
    int64_t node;                               /* the node whose ranks are added up at present */
    double into_node;                           /* bytes that `node` receives from other nodes */
    tsr_load inside, between;                   /* of the busiest rank, of the busiest node */
    double work;                                /* seconds of the rank that works longest, by tables */
    bool used[TSR_PHASES], crossed[TSR_PHASES]; /* by phase: some rank receives, some rank receives from another node */
    tsr_plan_survey out;
} survey;

static tsr_status list_all(survey *s)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(s->plan->context, 2 * s->plan->count, sizeof(tsr_mesh *), &memory));
    const tsr_mesh **meshes = memory;
    const size_t count = tsr_plan_list_meshes(s->plan, meshes);
    tsr_status status = TSR_OK;
    for (size_t i = 0; i < count && status == TSR_OK; i++)
        status = tsr_meter_take_times(&s->meter, tsr_mesh_count(meshes[i]), ENTRIES_OF_RANK);
    if (status == TSR_OK)
        status = tsr_ranks_of_meshes(meshes, count, &s->ranks, &s->rank_count);
    tsr_release(s->plan->context, meshes);
    return status;
}

static tsr_status list_some(survey *s)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(s->plan->context, s->only_count, sizeof *s->ranks, &memory));
    s->ranks = memory;
    for (size_t i = 0; i < s->only_count; i++) {
        if (s->only[i] < 0 || s->only[i] > INT_MAX)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: ranks[%zu] is %lld; ranks count from 0%s", s->function, i,
                                  (long long)s->only[i], s->only[i] < 0 ? "" : " to less than 2^31");
        s->ranks[i] = (int)s->only[i];
    }
    s->rank_count = tsr_ranks_sort(s->ranks, s->only_count);
    return tsr_meter_take_times(&s->meter, s->rank_count, ENTRIES_OF_RANK);
}

static int by_node(const void *a, const void *b, const void *arg)
{
    const tsr_node_map *nodes = arg;
    const int x = *(const int *)a, y = *(const int *)b;
    const int64_t node_of_x = tsr_node_map_find(nodes, x), node_of_y = tsr_node_map_find(nodes, y);
    if (node_of_x != node_of_y)
        return node_of_x < node_of_y ? -1 : 1;
    return x < y ? -1 : x > y;
}

static tsr_status list_layouts(survey *s)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(s->plan->context, 2 * s->plan->count, sizeof *s->src, &memory));
    s->src = memory;
    s->dst = s->src + s->plan->count;
    for (size_t i = 0; i < s->plan->count; i++) {
        s->src[i] = s->plan->items[i].given_src;
        s->dst[i] = s->plan->items[i].given_dst;
    }
    return TSR_OK;
}

static tsr_status add_to_sum(const survey *s, tsr_plan_sum *sum, int64_t bytes, const char *what)
{
    sum->max = tsr_max_i64(sum->max, bytes);
    if (tsr_add_sizes(sum->total, bytes, &sum->total))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: all ranks together %s more than 2^63 - 1 bytes", s->function, what);
}

static tsr_status add_figures(survey *s, const tsr_plan_figures *f)
{
    tsr_plan_survey *out = &s->out;
    TSR_TRY(add_to_sum(s, &out->bytes_received, f->bytes_received, "receive"));
    TSR_TRY(add_to_sum(s, &out->bytes_sent, f->bytes_sent, "send"));
    TSR_TRY(add_to_sum(s, &out->bytes_kept, f->bytes_kept, "keep"));
    out->messages_received = tsr_max_i64(out->messages_received, f->messages_received);
    out->messages_sent = tsr_max_i64(out->messages_sent, f->messages_sent);
    out->workspace_bytes = f->workspace_bytes > out->workspace_bytes ? f->workspace_bytes : out->workspace_bytes;
    out->gather_and_slice.max = tsr_max_i64(out->gather_and_slice.max, f->gather_and_slice);
    out->gather_and_slice.total = tsr_add_saturated(out->gather_and_slice.total, f->gather_and_slice);
    return TSR_OK;
}

/* Adds the rank's lower bound, from the items that have one for each rank. If there are other
 * items, add_partial_bounds() sets the maximum to -1. */
static tsr_status add_bounds(survey *s, const tsr_plan *own)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < own->count; i++)
        if (tsr_bound_is_exact(&own->items[i]))
            TSR_TRY(tsr_bound_of_rank(&own->items[i], &s->meter, &bytes));
    return add_to_sum(s, &s->out.lower_bound, bytes, "must receive");
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
    const int64_t node = s->nodes ? tsr_node_map_find(s->nodes, rank) : 0;
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
    s->work = greater(s->work, m->work);
}

/* True if the rank receives more than all ranks before it, or as much as the busiest and has a
 * lower number. */
static bool is_busiest(const survey *s, int64_t rank, int64_t received)
{
    const int64_t most = s->out.bytes_received.max;
    return received > most || (received == most && rank < s->out.busiest_rank);
}

/* Refuses at once what would be refused after long work. All ranks are taken to cost what the
 * cheapest of several costs, as a few may cost far more than the rest. */
static tsr_status try_some(const survey *s)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < SAMPLES && least > (s->meter.limit - s->meter.used) / s->rank_count; i++) {
        tsr_plan *own = NULL;
        const double turns = (i + 1) * GOLDEN;
        const int place = (int)((turns - (int64_t)turns) * s->rank_count);
        TSR_TRY(tsr_plan_create_like(s->function, s->plan, s->src, s->dst, s->ranks[place], &own));
        least = tsr_min_i64(least, own->meter.used);
        tsr_plan_destroy(own);
    }
    tsr_meter meter = s->meter;
    return tsr_meter_take_times(&meter, least, s->rank_count);
}

static tsr_status add_rank(survey *s, int64_t rank)
{
    tsr_plan *own = NULL;
    tsr_measure m;
    TSR_TRY(tsr_plan_create_like(s->function, s->plan, s->src, s->dst, rank, &own));
    tsr_status status = tsr_meter_take(&s->meter, own->meter.used);
    if (status == TSR_OK)
        status = tsr_measure_plan(own, &m);
    if (status == TSR_OK && is_busiest(s, rank, m.figures.bytes_received))
        s->out.busiest_rank = rank;
    if (status == TSR_OK)
        status = add_figures(s, &m.figures);
    if (status == TSR_OK)
        status = add_bounds(s, own);
    for (size_t i = 0; i < s->out.step_count && status == TSR_OK; i++) {
        s->out.steps[i].mesh_dims |= m.steps[i].mesh_dims;
        status = add_to_sum(s, &s->out.steps[i].bytes_received, m.steps[i].bytes_received, "receive");
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
        if (s->only) {
            s->out.lower_bound.total = -1;
            return TSR_OK;
        }
        TSR_TRY(tsr_bound_add_total(&s->plan->items[i], &s->meter, &s->out.lower_bound.total));
    }
    return TSR_OK;
}

static tsr_status take_survey(survey *s)
{
    const tsr_steps steps = tsr_steps_of(s->plan);
    s->out.step_count = steps.count;
    for (size_t i = 0; i < steps.count; i++)
        s->out.steps[i].op = steps.ops[i];
    s->nodes = tsr_told_nodes(s->plan);
    TSR_TRY(list_layouts(s));
    TSR_TRY(s->only ? list_some(s) : list_all(s));
    if (s->nodes && s->nodes->each == 0)
        tsr_sort_array(s->ranks, (size_t)s->rank_count, sizeof *s->ranks, by_node, s->nodes);
    s->out.ranks = s->rank_count;
    s->out.busiest_rank = -1;
    if (s->rank_count > SAMPLES)
        TSR_TRY(try_some(s));
    for (int i = 0; i < s->rank_count; i++)
        TSR_TRY(add_rank(s, s->ranks[i]));
    end_node(s);
    TSR_TRY(add_partial_bounds(s));
    s->out.ratio = tsr_told_ratio(s->out.bytes_received.total, s->out.lower_bound.total);
    for (int phase = 0; phase < TSR_PHASES; phase++) {
        s->inside.steps += s->used[phase];
        s->between.steps += s->crossed[phase];
    }
    s->out.seconds = tsr_work_plan_seconds(s->plan, s->work, s->inside, s->between);
    return TSR_OK;
}

static tsr_status survey_plan(survey *s, tsr_plan_survey *out)
{
    if (!s->plan || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", s->function, !s->plan ? "plan" : "out");
    s->meter = tsr_meter_of(s->function, s->plan->items[0].given_src, s->plan->items[0].given_dst);
    s->meter.limit *= PLANS;
    s->meter.plans = PLANS;
    const tsr_status status = take_survey(s);
    if (status == TSR_OK)
        *out = s->out;
    tsr_release(s->plan->context, s->ranks);
    tsr_release(s->plan->context, s->src);
    return status;
}

tsr_status tsr_plan_survey_of(const tsr_plan *plan, tsr_plan_survey *out)
{
    survey s = {.plan = plan, .function = "tsr_plan_survey_of"};
    return survey_plan(&s, out);
}

tsr_status tsr_plan_survey_some(const tsr_plan *plan, const int64_t *ranks, size_t count, tsr_plan_survey *out)
{
    survey s = {.plan = plan, .function = "tsr_plan_survey_some", .only = ranks, .only_count = count};
    if (!ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_plan_survey_some: ranks is NULL");
    return survey_plan(&s, out);
}
