#include "graph.h"

#include "chance.h"

/* What a random number is for. */
enum { FOR_NOISE = 1, FOR_NEIGHBOUR, FOR_LABEL };

int64_t graph_community(const graph *g, int64_t node)
{
    return node * g->communities / g->nodes;
}

int64_t graph_first(const graph *g, int64_t community)
{
    return (community * g->nodes + g->communities - 1) / g->communities;
}

static uint64_t draw(const graph *g, int purpose, int64_t node, int64_t number)
{
    return chance_mix(chance_mix(chance_mix(g->seed, (uint64_t)purpose), (uint64_t)node), (uint64_t)number);
}

int64_t graph_neighbour(const graph *g, int64_t node, int64_t number)
{
    const uint64_t bits = draw(g, FOR_NEIGHBOUR, node, number);
    if (chance_part(draw(g, FOR_NOISE, node, number)) < g->noise)
        return chance_below(bits, g->nodes);
    const int64_t own = graph_community(g, node), first = graph_first(g, own);
    return first + chance_below(bits, graph_first(g, own + 1) - first);
}

bool graph_is_labelled(const graph *g, int64_t node)
{
    return draw(g, FOR_LABEL, node, 0) & 1;
}
