#include "simulate/sample.h"

#include "cli/order.h"
#include "simulate/holders.h"

#include <math.h>
#include <stdlib.h>

/* Upper bounds of the ranks of a sample, and of the messages of all their plans together. */
#define SAMPLED_RANKS 256
#define MOST_MESSAGES (INT64_C(1) << 18)
/* Upper bound of the messages of the plans of one node: more would take minutes. */
#define MOST_NODE_MESSAGES (INT64_C(1) << 28)

/* A sample: ranks that are planned for. */
typedef struct sample {
    holders of;
    int64_t first, last; /* first and last rank of the mesh, whose ranks follow each other */
    int64_t holding;     /* number of holders; -1: unknown */
    int64_t node;        /* ranks of a node, if whole nodes are taken; else 1 */
    int64_t messages;    /* messages of one rank's plan, received and sent */
    int64_t *ranks;      /* ascending, without repeats */
    size_t count;
} sample;

static int64_t limit(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* Counts the messages of a rank's plan, received and sent. */
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

/* Writes about `wanted` holders. If the two layouts cannot be counted together, up to `wanted` of
 * each layout; if neither can be counted, ranks spread over the mesh. `ranks` has room for 2 *
 * wanted. Returns their number. */
static size_t pick(const sample *s, int64_t wanted, int64_t *ranks)
{
    const holders each[] = {{s->of.mesh, s->of.from, s->of.from}, {s->of.mesh, s->of.to, s->of.to}};
    const int64_t ranks_in_all = s->last - s->first + 1;
    size_t count = 0;
    if (s->holding >= 0) {
        wanted = limit(wanted, 0, s->holding);
        holders_spread(&s->of, s->holding, wanted, ranks);
        return (size_t)wanted;
    }
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        const int64_t holding = holders_count(&each[i]), some = limit(wanted, 0, holding < 0 ? 0 : holding);
        if (some == 0)
            continue;
        holders_spread(&each[i], holding, some, ranks + count);
        count += (size_t)some;
    }
    for (int64_t i = 0; count == 0 && i < wanted; i++)
        ranks[i] = s->first + (wanted > 1 ? i * (ranks_in_all - 1) / (wanted - 1) : 0);
    return count > 0 ? count : (size_t)wanted;
}

/* Sets s->ranks to the picked ranks, each with its whole node if s->node is above 1. Returns the
 * tool's exit status. */
static int take(sample *s, const int64_t *picked, size_t count)
{
    const size_t node = (size_t)s->node;
    s->count = 0;
    s->ranks = calloc(count * node + 1, sizeof *s->ranks);
    if (!s->ranks)
        return complain(EXIT_REFUSED, "there is no memory for the ranks that stand for all");
    for (size_t i = 0; i < count; i++)
        for (size_t mate = 0; mate < node; mate++) {
            const int64_t rank = picked[i] / s->node * s->node + (int64_t)mate;
            if (s->first <= rank && rank <= s->last)
                s->ranks[s->count++] = rank;
        }
    s->count = sort_ranks(s->ranks, s->count);
    return EXIT_DONE;
}

/* Lists the holders of two layouts that can only be counted one by one; returns 0 if they cannot
 * be counted, or are more than SIMULATION_MOST_RANKS with repeats. */
static size_t list_both(const sample *s, int64_t *ranks)
{
    const holders from = {s->of.mesh, s->of.from, s->of.from}, to = {s->of.mesh, s->of.to, s->of.to};
    const int64_t before = holders_count(&from), after = holders_count(&to);
    if (before < 0 || after < 0 || before + after > SIMULATION_MOST_RANKS)
        return 0;
    holders_spread(&from, before, before, ranks);
    holders_spread(&to, after, after, ranks + before);
    return sort_ranks(ranks, (size_t)(before + after));
}

/* Sets s->ranks to all holders; leaves it empty if they are more than SIMULATION_MOST_RANKS. */
static int take_all(sample *s)
{
    int64_t picked[SIMULATION_MOST_RANKS];
    size_t count = 0;
    s->node = 1;
    if (s->holding < 0)
        count = list_both(s, picked);
    else if (s->holding <= SIMULATION_MOST_RANKS)
        count = pick(s, s->holding, picked);
    if (s->holding < 0 && count > 0)
        s->holding = (int64_t)count;
    /* without holders, the plan of the first rank gives figures of 0 */
    if (s->holding == 0)
        picked[count++] = s->first;
    return count > 0 ? take(s, picked, count) : EXIT_DONE;
}

/* Sets s->node and s->messages, and refuses nodes that would take minutes to plan. */
static int weigh(const plan_request *r, sample *s)
{
    const int64_t node = r->options.nodes.ranks_per_node;
    int64_t middle[2];
    s->node = node > 1 && s->first / node != s->last / node ? node : 1;
    pick(s, 1, middle);
    if (s->node > SAMPLED_RANKS)
        return complain(EXIT_REFUSED,
                        "--ranks-per-node is %lld: on a mesh of more than %d ranks %d a node are the most, for whole "
                        "nodes are planned for",
                        (long long)node, SIMULATION_MOST_RANKS, SAMPLED_RANKS);
    if (count_messages(r, middle[0], &s->messages) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (s->messages * s->node > MOST_NODE_MESSAGES)
        return complain(EXIT_REFUSED,
                        "--ranks-per-node is %lld: a node of ranks that have %lld messages each has more than %lld, "
                        "which would take minutes "
                        "to plan; at most %lld ranks a node can be simulated here",
                        (long long)node, (long long)s->messages, (long long)MOST_NODE_MESSAGES,
                        (long long)(MOST_NODE_MESSAGES / s->messages));
    return EXIT_DONE;
}

/* Takes a spread sample of as many ranks as MOST_MESSAGES allows, at least one node. */
static int take_some(sample *s)
{
    int64_t picked[2 * SAMPLED_RANKS];
    const int64_t ranks = limit(MOST_MESSAGES / (s->messages + 1), 1, SAMPLED_RANKS);
    return take(s, picked, pick(s, limit(ranks / s->node, 1, SAMPLED_RANKS), picked));
}

static bool is_taken(const sample *s, int64_t rank)
{
    return find_rank(s->ranks, s->count, rank) != NULL;
}

/* Takes the edges (holders_edges()) that are not `taken` already, with their nodes unless these
 * have too many messages. */
static int take_edges(const sample *taken, sample *s)
{
    int64_t picked[HOLDERS_EDGES];
    const size_t count = sort_ranks(picked, (size_t)holders_edges(&s->of, picked));
    size_t kept = 0;
    if ((int64_t)count * s->node * (s->messages + 1) > MOST_MESSAGES)
        s->node = 1;
    const int status = take(s, picked, count);
    for (size_t i = 0; status == EXIT_DONE && i < s->count; i++)
        if (!is_taken(taken, s->ranks[i]))
            s->ranks[kept++] = s->ranks[i];
    s->count = kept;
    return status;
}

/* Scales the total of a sample up to all holders; -1 if the number of holders is unknown. */
static int64_t scale(int64_t total, const sample *s)
{
    int64_t holding = 0;
    for (size_t i = 0; i < s->count; i++)
        holding += holders_include(&s->of, s->ranks[i]);
    if (total < 0 || s->holding < 0)
        return -1;
    return holding > 0 ? (int64_t)fmin(rint((double)total / (double)holding * (double)s->holding), 0x1p62) : 0;
}

static void raise_to(int64_t *most, int64_t value)
{
    *most = value > *most ? value : *most;
}

/* Raises the maxima of `all` to those of `more`, and adds its ranks. A maximum of -1, for no
 * bound, is -1 in both. */
static void add_most(tsr_plan_survey *all, const tsr_plan_survey *more)
{
    raise_to(&all->bytes_received.max, more->bytes_received.max);
    raise_to(&all->bytes_sent.max, more->bytes_sent.max);
    raise_to(&all->lower_bound.max, more->lower_bound.max);
    raise_to(&all->messages_received, more->messages_received);
    raise_to(&all->messages_sent, more->messages_sent);
    all->workspace_bytes = more->workspace_bytes > all->workspace_bytes ? more->workspace_bytes : all->workspace_bytes;
    all->seconds = fmax(all->seconds, more->seconds);
    all->ranks += more->ranks;
}

static int survey(const tsr_plan *plan, const sample *s, tsr_plan_survey *out)
{
    return tsr_plan_survey_some(plan, s->ranks, s->count, out) == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

/* Adds the edges to the maxima alone: totals must not be scaled from them, since they are not
 * typical. */
static int survey_edges(const tsr_plan *plan, const sample *s, sample *edges, tsr_plan_survey *out)
{
    tsr_plan_survey most;
    *edges = *s;
    edges->ranks = NULL;
    int status = take_edges(s, edges);
    if (status == EXIT_DONE && edges->count > 0)
        status = survey(plan, edges, &most);
    if (status == EXIT_DONE && edges->count > 0)
        add_most(out, &most);
    return status;
}

/* Estimates the bytes received by the `count` holders that hold nothing after the move (as in
 * intermediate steps and reductions), from those in `s`; -1 if none is in `s`. */
static int count_passed(const tsr_plan *plan, const sample *s, const holders *after, int64_t count, int64_t *total)
{
    sample others = {.of = s->of, .holding = count, .ranks = calloc(s->count + 1, sizeof *others.ranks)};
    tsr_plan_survey figures;
    int status = EXIT_DONE;
    *total = -1;
    if (!others.ranks)
        return complain(EXIT_REFUSED, "there is no memory for the ranks that stand for all");
    for (size_t i = 0; i < s->count; i++)
        if (holders_include(&s->of, s->ranks[i]) && !holders_include(after, s->ranks[i]))
            others.ranks[others.count++] = s->ranks[i];
    if (others.count > 0)
        status = survey(plan, &others, &figures);
    if (status == EXIT_DONE && others.count > 0)
        *total = scale(figures.bytes_received.total, &others);
    free(others.ranks);
    return status;
}

/* True if only ranks that hold an element after the move receive bytes. */
static bool goes_straight(const tsr_plan_survey *figures)
{
    return figures->step_count <= 1 && figures->lower_bound.max >= 0;
}

/* Takes ranks that hold an element after the move, as many as MOST_MESSAGES allows, with their
 * nodes unless these have too many messages. */
static int take_receivers(const plan_request *r, sample *s)
{
    int64_t picked[SAMPLED_RANKS], middle;
    holders_spread(&s->of, s->holding, 1, &middle);
    if (count_messages(r, middle, &s->messages) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (s->node * (s->messages + 1) > MOST_MESSAGES)
        s->node = 1;
    const int64_t ranks = limit(MOST_MESSAGES / (s->messages + 1), 1, SAMPLED_RANKS),
                  wanted = limit(ranks / s->node, 1, s->holding);
    holders_spread(&s->of, s->holding, wanted, picked);
    const int status = take(s, picked, (size_t)wanted);
    size_t kept = 0;
    for (size_t i = 0; status == EXIT_DONE && i < s->count; i++)
        if (holders_include(&s->of, s->ranks[i]))
            s->ranks[kept++] = s->ranks[i];
    s->count = kept;
    return status;
}

/* Sets the totals of a move after which only some of the holders, after->holding, hold an element.
 * They get a sample of their own: the first sample may have by chance too many or too few of
 * them. */
static int survey_receivers(const plan_request *r, const tsr_plan *plan, const sample *s, const sample *edges,
                            sample *after, tsr_plan_survey *out)
{
    tsr_plan_survey figures;
    int64_t passed = 0;
    int status = take_receivers(r, after);
    if (status == EXIT_DONE)
        status = survey(plan, after, &figures);
    if (status == EXIT_DONE && !goes_straight(&figures))
        status = count_passed(plan, s, &after->of, s->holding - after->holding, &passed);
    if (status != EXIT_DONE)
        return status;
    const int64_t received = scale(figures.bytes_received.total, after);
    add_most(out, &figures);
    for (size_t i = 0; i < after->count; i++)
        out->ranks -= is_taken(s, after->ranks[i]) || is_taken(edges, after->ranks[i]);
    out->bytes_received.total = received < 0 || passed < 0 ? -1 : received + passed;
    out->lower_bound.total = scale(figures.lower_bound.total, after);
    out->ratio = figures.ratio;
    if (out->bytes_received.total >= 0 && out->lower_bound.total > 0)
        out->ratio = (double)out->bytes_received.total / (double)out->lower_bound.total;
    return EXIT_DONE;
}

static int survey_some(const plan_request *r, const tsr_plan *plan, sample *s, tsr_plan_survey *out)
{
    sample edges = {.count = 0}, after = {.of = {s->of.mesh, s->of.to, s->of.to}, .first = s->first, .last = s->last};
    int status = weigh(r, s);
    if (status == EXIT_DONE)
        status = take_some(s);
    if (status == EXIT_DONE)
        status = survey(plan, s, out);
    if (status != EXIT_DONE)
        return status;
    out->bytes_received.total = scale(out->bytes_received.total, s);
    out->lower_bound.total = scale(out->lower_bound.total, s);
    status = survey_edges(plan, s, &edges, out);
    after.holding = holders_count(&after.of);
    after.node = s->node;
    if (status == EXIT_DONE && 0 < after.holding && after.holding < s->holding)
        status = survey_receivers(r, plan, s, &edges, &after, out);
    free(edges.ranks);
    free(after.ranks);
    return status;
}

int simulation_sample(const plan_request *r, const tsr_plan *plan, simulation *out)
{
    const int64_t origin[TSR_MAX_DIMS] = {0};
    sample s = {.of = {r->mesh, r->from, r->to}};
    if (tsr_mesh_rank_at(r->mesh, origin, &s.first) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    s.last = s.first + out->ranks - 1;
    s.holding = holders_count(&s.of);
    int status = take_all(&s);
    out->estimated = s.count == 0;
    if (status == EXIT_DONE)
        status = out->estimated ? survey_some(r, plan, &s, &out->figures) : survey(plan, &s, &out->figures);
    out->planned = out->figures.ranks;
    free(s.ranks);
    return status;
}
