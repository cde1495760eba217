#include "simulation.h"

#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** As many ranks are all planned for; of more, so many or one node, but fewer where that many plans have more messages. */
#define MOST_RANKS    4096
#define SAMPLED_RANKS 256
#define MOST_MESSAGES (INT64_C(1) << 18)

/** Position `index` of `count` that lie evenly from 0 to `last`, both included; a single one in the middle. */
static int64_t spread_out(int64_t index, int64_t count, int64_t last)
{
    return count > 1 ? (int64_t)((double)last * (double)index / (double)(count - 1)) : last / 2;
}

/** Ranks that stand for all: of a mesh of so many, which follow each other from `first` to `last`. */
typedef struct sample {
    int64_t first, last;
    int64_t node;   /**< ranks of one */
    int64_t nodes;  /**< that are taken whole, of those from first / node on; 0: ranks from all over the only node */
    int64_t wanted; /**< ranks, as far as nodes allow */
    int64_t *ranks;
    size_t count;
} sample;

static int64_t limit(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/** `messages` of one plan, received and sent. */
static sample choose_sample(int64_t first, int64_t count, int64_t node, int64_t messages)
{
    sample s = {.first = first, .last = first + count - 1, .node = node};
    const int64_t nodes = node > 0 ? s.last / node - first / node + 1 : 1;
    s.wanted = limit(MOST_MESSAGES / (messages + 1), 1, SAMPLED_RANKS);
    if (nodes > 1)
        s.nodes = limit(s.wanted / node, 1, nodes);
    return s;
}

/** Of the rank in the middle. */
static tsr_status count_messages(const plan_request *r, int64_t rank, int64_t *out)
{
    tsr_plan_options options = r->options;
    tsr_plan *plan;
    tsr_plan_figures figures;
    options.rank = rank;
    tsr_status status = tsr_plan_create(r->from, r->to, &options, &plan);
    if (status != TSR_OK)
        return status;
    status = tsr_plan_figures_of(plan, &figures);
    tsr_plan_destroy(plan);
    if (status == TSR_OK)
        *out = figures.messages_received + figures.messages_sent;
    return status;
}

static void fill_sample(sample *s)
{
    const int64_t first_node = s->nodes > 0 ? s->first / s->node : 0, last_node = s->nodes > 0 ? s->last / s->node : 0;
    for (int64_t i = 0; s->nodes == 0 && i < s->wanted; i++)
        s->ranks[s->count++] = s->first + spread_out(i, s->wanted, s->last - s->first);
    for (int64_t i = 0; i < s->nodes * s->node; i++) {
        const int64_t rank = (first_node + spread_out(i / s->node, s->nodes, last_node - first_node)) * s->node + i % s->node;
        if (s->first <= rank && rank <= s->last)
            s->ranks[s->count++] = rank;
    }
}

/** All bytes of all ranks, from those of some. */
static int64_t scale(int64_t total, const simulation *s)
{
    return total < 0 ? total : (int64_t)fmin(rint((double)total / (double)s->planned * (double)s->ranks), 0x1p62);
}

static int survey_some(const plan_request *r, const tsr_plan *plan, simulation *out)
{
    const int64_t origin[TSR_MAX_DIMS] = {0};
    int64_t first = 0, messages = 0;
    if (tsr_mesh_rank_at(r->mesh, origin, &first) != TSR_OK || count_messages(r, first + out->ranks / 2, &messages) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    sample s = choose_sample(first, out->ranks, r->options.ranks_per_node, messages);
    s.ranks = calloc((size_t)(s.nodes > 0 ? s.nodes * s.node : s.wanted), sizeof *s.ranks);
    if (s.ranks == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the ranks that stand for all");
    fill_sample(&s);
    const tsr_status status = tsr_plan_survey_some(plan, s.ranks, s.count, &out->figures);
    free(s.ranks);
    if (status != TSR_OK)
        return complain_status(EXIT_REFUSED);
    out->planned = out->figures.ranks;
    out->figures.bytes_received.total = scale(out->figures.bytes_received.total, out);
    out->figures.lower_bound.total = scale(out->figures.lower_bound.total, out);
    return EXIT_DONE;
}

/** Its ranks follow each other, for they are not listed. */
static bool is_in_order(const simulation *s)
{
    return strchr(s->mesh, '[') == NULL;
}

static int survey(const plan_request *r, simulation *out)
{
    tsr_plan *plan;
    int status = EXIT_DONE;
    if (tsr_plan_create(r->from, r->to, &r->options, &plan) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    out->ranks = out->planned = tsr_mesh_count(r->mesh);
    if (out->ranks > MOST_RANKS && is_in_order(out))
        status = survey_some(r, plan, out);
    else if (tsr_plan_survey_of(plan, &out->figures) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    tsr_plan_destroy(plan);
    return status;
}

static int name(const plan_request *r, simulation *out)
{
    out->mesh = mesh_text(r->mesh);
    out->from = layout_text(r->from);
    out->to = layout_text(r->to);
    out->dtype = tsr_layout_dtype(r->from);
    out->shape.ndim = tsr_layout_ndim(r->from);
    for (int d = 0; d < out->shape.ndim; d++)
        out->shape.size[d] = tsr_layout_shape(r->from)[d];
    if (out->mesh == NULL || out->from == NULL || out->to == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the names of the layouts");
    return EXIT_DONE;
}

int simulate(const tool_arguments *given, const tsr_cost_profile *links, simulation *out)
{
    plan_request request;
    *out = (simulation){.links = *links};
    int status = plan_request_read(given, NULL, &request);
    request.options.profile = links;
    if (status == EXIT_DONE)
        status = name(&request, out);
    if (status == EXIT_DONE)
        status = survey(&request, out);
    out->options = request.options;
    out->options.profile = NULL;
    plan_request_finish(&request);
    return status;
}

void simulation_finish(simulation *s)
{
    free(s->mesh);
    free(s->from);
    free(s->to);
}

double simulation_error(const simulation *s)
{
    return fabs(s->figures.seconds - s->measured.median) / s->measured.median;
}
