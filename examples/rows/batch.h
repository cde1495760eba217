/** Batches of nodes with sampled neighbours. A batch has BLOCKS blocks of BLOCK_NODES nodes, which
 * ranks share; what a node sees depends on the seed, the epoch and its place in it alone. */
#ifndef ROWS_BATCH_H
#define ROWS_BATCH_H

#include "graph.h"

enum {
    BLOCKS = 12,
    BLOCK_NODES = 40,
    BATCH_NODES = BLOCKS * BLOCK_NODES,
    FANOUT = 5,           /* neighbours that are drawn for a node */
    MEMBERS = 1 + FANOUT, /* a node and these */
    TREE = MEMBERS * MEMBERS
};

/** Puts `count` nodes, in ascending order, into the order of an epoch. */
void batch_shuffle(int64_t *nodes, int64_t count, uint64_t seed, uint64_t epoch);

/** The ids whose rows a node needs, in two layers: a row of MEMBERS ids, itself and neighbours of
 * it, for each of itself and the neighbours in its own row. `draw` says which neighbours. */
void batch_tree(const graph *g, int64_t node, uint64_t draw, int64_t ids[TREE]);

/** The community that most of the neighbours in a tree's first row have, the lowest of several:
 * what is known without the rest of the graph. */
int64_t batch_vote(const graph *g, const int64_t ids[TREE]);

/** What batch_tree() draws by, for the node at `place` of an epoch. */
uint64_t batch_draw(uint64_t seed, uint64_t epoch, int64_t place);

#endif
