#include "simulation.h"

#include "holders.h"
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/** As many ranks are all planned for; of more, so many or one node, but fewer where that many plans have more messages. */
#define MOST_RANKS    4096
#define SAMPLED_RANKS 256
#define MOST_MESSAGES (INT64_C(1) << 18)

/** Ranks that stand for all that hold anything. */
typedef struct sample {
    holders of;
    int64_t first, last; /**< of the mesh, whose ranks follow each other */
    int64_t holding;     /**< how many of them; -1: not known */
    int64_t node;        /**< ranks of one that is taken whole; 1: ranks are taken by themselves */
    int64_t wanted;      /**< nodes */
    int64_t *ranks;
    size_t count;
} sample;

static int64_t limit(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/** Messages of a rank's plan, received and sent. */
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

/** `wanted` ranks that hold something, or where those are not known ranks from all over; ascending. */
static void pick(const sample *s, int64_t *ranks)
{
    const int64_t ranks_in_all = s->last - s->first + 1;
    if (s->holding > 0)
        holders_spread(&s->of, s->holding, s->wanted, ranks);
    for (int64_t i = 0; s->holding <= 0 && i < s->wanted; i++)
        ranks[i] = s->first + (s->wanted > 1 ? i * (ranks_in_all - 1) / (s->wanted - 1) : 0);
}

/** Those that hold something where they are few, else some of them, in whole nodes where there are several. */
static int size_sample(const plan_request *r, sample *s)
{
    const int64_t node = r->options.ranks_per_node;
    const bool nodes = node > 1 && s->first / node != s->last / node;
    int64_t messages, middle;
    if (nodes && node > SAMPLED_RANKS)
        return complain(EXIT_REFUSED,
                        "--ranks-per-node is %lld: on a mesh of more than %d ranks %d a node are the most, for whole nodes are planned for",
                        (long long)node, MOST_RANKS, SAMPLED_RANKS);
    s->node = 1;
    s->wanted = limit(s->holding, 1, MOST_RANKS);
    if (0 <= s->holding && s->holding <= MOST_RANKS)
        return EXIT_DONE;
    s->wanted = 1;
    pick(s, &middle);
    if (count_messages(r, middle, &messages) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    s->node = nodes ? node : 1;
    s->wanted = limit(limit(MOST_MESSAGES / (messages + 1), 1, SAMPLED_RANKS) / s->node, 1, SAMPLED_RANKS);
    return EXIT_DONE;
}

/** The picked ranks, each with its node. Room is for all. */
static void fill_sample(sample *s, const int64_t *picked)
{
    int64_t last = -1;
    for (int64_t i = 0; i < s->wanted; i++) {
        const int64_t node = picked[i] / s->node;
        for (int64_t rank = node * s->node; node != last && rank < (node + 1) * s->node; rank++)
            if (s->first <= rank && rank <= s->last)
                s->ranks[s->count++] = rank;
        last = node;
    }
}

/** All bytes of all ranks, from those of some; -1 where it is not known for how many these stand. */
static int64_t scale(int64_t total, const sample *s)
{
    int64_t holding = 0;
    for (size_t i = 0; i < s->count; i++)
        holding += holders_include(&s->of, s->ranks[i]);
    if (total < 0 || s->holding < 0)
        return -1;
    return holding > 0 ? (int64_t)fmin(rint((double)total / (double)holding * (double)s->holding), 0x1p62) : 0;
}

static int survey_sample(const tsr_plan *plan, sample *s, simulation *out)
{
    int64_t *const picked = calloc((size_t)(s->wanted * (s->node + 1)), sizeof *picked);
    if (picked == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the ranks that stand for all");
    s->ranks = picked + s->wanted;
    pick(s, picked);
    fill_sample(s, picked);
    const tsr_status status = tsr_plan_survey_some(plan, s->ranks, s->count, &out->figures);
    out->planned = out->figures.ranks;
    out->estimated = s->holding < 0 || s->holding > MOST_RANKS;
    if (status == TSR_OK && out->estimated) {
        out->figures.bytes_received.total = scale(out->figures.bytes_received.total, s);
        out->figures.lower_bound.total = scale(out->figures.lower_bound.total, s);
    }
    free(picked);
    return status == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

static int survey_some(const plan_request *r, const tsr_plan *plan, simulation *out)
{
    const int64_t origin[TSR_MAX_DIMS] = {0};
    sample s = {.of = {r->mesh, r->from, r->to}};
    if (tsr_mesh_rank_at(r->mesh, origin, &s.first) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    s.last = s.first + out->ranks - 1;
    s.holding = holders_count(&s.of);
    const int status = size_sample(r, &s);
    return status == EXIT_DONE ? survey_sample(plan, &s, out) : status;
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
