#include "redistribute/match/turn.h"

#include "base/checked.h"

enum { ALL, OWNED };

static void narrow_range(tsr_range *range, int mesh_dim, int64_t begin, int64_t end)
{
    range->begin[mesh_dim] = tsr_max_i64(range->begin[mesh_dim], begin);
    range->end[mesh_dim] = tsr_min_i64(range->end[mesh_dim], end);
}

void tsr_turn_ranges(const tsr_problem *problem, const int64_t *src, tsr_range *all, tsr_range *owned)
{
    *all = (tsr_range){0};
    for (int m = 0; m < problem->dst.ndim; m++) {
        const tsr_role role = problem->dst.roles[m];
        const int64_t kept = role == TSR_ROLE_KEPT ? src[problem->dst.twin[m]] : 0;
        all->begin[m] = kept;
        all->end[m] = role == TSR_ROLE_KEPT || role == TSR_ROLE_ZERO ? kept + 1 : problem->dst.shape[m];
    }
    *owned = *all;
    for (int m = 0; m < problem->dst.ndim; m++) {
        const int twin = problem->dst.twin[m];
        if (twin >= 0 && problem->src.roles[twin] == TSR_ROLE_CUT)
            narrow_range(owned, m, src[twin], src[twin] + 1);
    }
}

/* The tensor dim that a mesh dim of the destination cuts; if it cuts nothing, the number of tensor
 * dims. */
static int factor_of(const tsr_problem *problem, int mesh_dim)
{
    return problem->dst.roles[mesh_dim] == TSR_ROLE_CUT ? problem->dst.layout->placements[mesh_dim].dim
                                                        : problem->dst.layout->ndim;
}

static int64_t count_uncut(const tsr_problem *problem, const tsr_range *range)
{
    int64_t count = 1;
    for (int m = 0; m < problem->dst.ndim; m++)
        if (problem->dst.roles[m] != TSR_ROLE_CUT)
            count *= tsr_max_i64(0, range->end[m] - range->begin[m]);
    return count;
}

static int64_t count_factor(const tsr_turns *turns, int which, int factor)
{
    const tsr_range *range = &turns->ranges[which];
    if (factor == turns->problem->dst.layout->ndim)
        return count_uncut(turns->problem, range);
    return tsr_reach_count(&turns->reach[factor], range, which == OWNED);
}

/* The product of all factors but number `factor`. */
static int64_t others(const tsr_turns *turns, const tsr_ways *ways, int factor)
{
    int64_t count = 1;
    for (int i = 0; i <= turns->problem->dst.layout->ndim; i++)
        count *= i == factor ? 1 : ways->factors[i];
    return count;
}

void tsr_turns_begin(tsr_turns *turns)
{
    const int ndim = turns->problem->dst.layout->ndim;
    for (int i = 0; i < ndim; i++) {
        tsr_reach_narrow(&turns->reach[i], &turns->all);
        tsr_reach_narrow(&turns->reach[i], &turns->owned);
    }
    turns->ranges[ALL] = turns->all;
    turns->ranges[OWNED] = turns->owned;
    turns->chosen = 0;
    int64_t counts[2] = {0};
    for (int which = ALL; which <= turns->leaves_out; which++) {
        tsr_ways *ways = &turns->ways[0][which];
        for (int i = 0; i < ndim; i++)
            ways->factors[i] = which == ALL ? tsr_reach_total(&turns->reach[i]) : count_factor(turns, which, i);
        ways->factors[ndim] = count_factor(turns, which, ndim);
        counts[which] = others(turns, ways, -1);
    }
    turns->first[0] = 0;
    turns->count = turns->size[0] = counts[ALL] - counts[OWNED];
}

/* The choice of a coordinate on one mesh dim; the mesh dims before it are chosen. */
typedef struct choice {
    tsr_turns *turns;
    int mesh_dim, factor;
    int64_t others[2]; /* the product of the factors that the choice does not change; 0: no coordinate is left */
} choice;

/* ways[ALL], ways[OWNED]: the factor that the choice changes, for all receivers and for owners;
 * receivers: their count. */
typedef struct tally {
    int64_t ways[2], receivers;
} tally;

static choice choice_begin(tsr_turns *turns, int mesh_dim)
{
    choice c = {turns, mesh_dim, factor_of(turns->problem, mesh_dim), {0}};
    for (int which = ALL; which <= turns->leaves_out; which++) {
        const tsr_ways *ways = &turns->ways[mesh_dim][which];
        c.others[which] = ways->factors[c.factor] == 0 ? 0 : others(turns, ways, c.factor);
    }
    return c;
}

/* At the ends of the range the answer is known without counting. */
static int64_t count_ways_below(const choice *c, int which, int64_t end)
{
    tsr_range *range = &c->turns->ranges[which];
    const int64_t whole = range->end[c->mesh_dim];
    if (c->others[which] == 0 || end <= range->begin[c->mesh_dim])
        return 0;
    if (end >= whole)
        return c->turns->ways[c->mesh_dim][which].factors[c->factor];
    range->end[c->mesh_dim] = end;
    const int64_t count = count_factor(c->turns, which, c->factor);
    range->end[c->mesh_dim] = whole;
    return count;
}

/* The receivers whose coordinate on the mesh dim is below `end`. */
static tally count_below(const choice *c, int64_t end)
{
    tally t = {0};
    for (int which = ALL; which <= c->turns->leaves_out; which++)
        t.ways[which] = count_ways_below(c, which, end);
    t.receivers = c->others[ALL] * t.ways[ALL] - c->others[OWNED] * t.ways[OWNED];
    return t;
}

/* The receivers with the coordinates chosen before this choice. */
static tally count_all(const choice *c)
{
    const tsr_turns *turns = c->turns;
    const tsr_ways *ways = turns->ways[c->mesh_dim];
    return (tally){{ways[ALL].factors[c->factor], ways[OWNED].factors[c->factor]}, turns->size[c->mesh_dim]};
}

/* Chooses coordinate `at`; `below` and `next` are count_below() of `at` and of `at + 1`. */
static void choose_coordinate(const choice *c, int64_t at, const tally *below, const tally *next)
{
    tsr_turns *turns = c->turns;
    const int m = c->mesh_dim;
    turns->coordinate[m] = at;
    turns->first[m + 1] = turns->first[m] + below->receivers;
    turns->size[m + 1] = next->receivers - below->receivers;
    turns->chosen = m + 1;
    if (m + 1 == turns->problem->dst.ndim)
        return;
    for (int which = ALL; which <= turns->leaves_out; which++) {
        turns->ways[m + 1][which] = turns->ways[m][which];
        turns->ways[m + 1][which].factors[c->factor] = next->ways[which] - below->ways[which];
        narrow_range(&turns->ranges[which], m, at, at + 1);
    }
}

/* Forgets the choices from mesh dim `m` on. */
static void reconsider(tsr_turns *turns, int m)
{
    for (int i = m; i < turns->chosen; i++) {
        turns->ranges[ALL].begin[i] = turns->all.begin[i];
        turns->ranges[ALL].end[i] = turns->all.end[i];
        turns->ranges[OWNED].begin[i] = turns->owned.begin[i];
        turns->ranges[OWNED].end[i] = turns->owned.end[i];
    }
    turns->chosen = m;
}

/* Chooses the coordinate of receiver number `wanted`. Counts mostly grow evenly, so the first four
 * guesses are proportional; after them, halving bounds the number of guesses. */
static void choose_for(tsr_turns *turns, int m, int64_t wanted)
{
    const choice c = choice_begin(turns, m);
    int64_t low = turns->all.begin[m], high = turns->all.end[m];
    tally below = {0}, next = count_all(&c);
    for (int guess = 0; high - low > 1; guess++) {
        const int64_t width = high - low;
        const double share = (double)(wanted - below.receivers) / (double)(next.receivers - below.receivers);
        const int64_t step = guess < 4 ? (int64_t)(share * (double)width) : width / 2;
        const int64_t middle = low + tsr_min_i64(tsr_max_i64(step, 1), width - 1);
        const tally t = count_below(&c, middle);
        if (t.receivers <= wanted) {
            low = middle;
            below = t;
        } else {
            high = middle;
            next = t;
        }
    }
    choose_coordinate(&c, low, &below, &next);
}

void tsr_turns_seek(tsr_turns *turns, int64_t turn)
{
    int m = turns->chosen;
    while (turn < turns->first[m] || turn >= turns->first[m] + turns->size[m])
        m--;
    reconsider(turns, m);
    for (; m < turns->problem->dst.ndim; m++)
        choose_for(turns, m, turn - turns->first[m]);
}

int64_t tsr_turns_of(tsr_turns *turns, const int64_t *receiver)
{
    reconsider(turns, 0);
    for (int m = 0;; m++) {
        const choice c = choice_begin(turns, m);
        const tally below = count_below(&c, receiver[m]);
        if (m + 1 == turns->problem->dst.ndim)
            return turns->first[m] + below.receivers;
        const tally next = count_below(&c, receiver[m] + 1);
        choose_coordinate(&c, receiver[m], &below, &next);
    }
}
