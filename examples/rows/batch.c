#include "batch.h"

#include "chance.h"

/* What a random number is for. */
enum { FOR_ORDER = 11, FOR_DRAW };

void batch_shuffle(int64_t *nodes, int64_t count, uint64_t seed, uint64_t epoch)
{
    const uint64_t order = chance_mix(chance_mix(seed, FOR_ORDER), epoch);
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = chance_below(chance_mix(order, (uint64_t)i), i + 1), node = nodes[i];
        nodes[i] = nodes[j];
        nodes[j] = node;
    }
}

/* A node and FANOUT of its neighbours, which may be equal. */
static void draw_members(const graph *g, int64_t node, uint64_t draw, int64_t ids[MEMBERS])
{
    ids[0] = node;
    for (int i = 1; i < MEMBERS; i++)
        ids[i] = graph_neighbour(g, node, chance_below(chance_mix(draw, (uint64_t)i), g->degree));
}

void batch_tree(const graph *g, int64_t node, uint64_t draw, int64_t ids[TREE])
{
    draw_members(g, node, draw, ids);
    for (int i = 1; i < MEMBERS; i++)
        draw_members(g, ids[i], chance_mix(draw, MEMBERS + (uint64_t)i), ids + MEMBERS * i);
}

int64_t batch_vote(const graph *g, const int64_t ids[TREE])
{
    int64_t elected = g->communities;
    int votes = 0;
    for (int i = 1; i < MEMBERS; i++) {
        const int64_t candidate = graph_community(g, ids[i]);
        int count = 0;
        for (int j = 1; j < MEMBERS; j++)
            count += graph_community(g, ids[j]) == candidate;
        if (count > votes || (count == votes && candidate < elected)) {
            elected = candidate;
            votes = count;
        }
    }
    return elected;
}

uint64_t batch_draw(uint64_t seed, uint64_t epoch, int64_t place)
{
    return chance_mix(chance_mix(chance_mix(seed, FOR_DRAW), epoch), (uint64_t)place);
}
